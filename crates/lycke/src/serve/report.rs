//! A load balancer in one line, for whoever watches the service.

use std::net::SocketAddr;

use crate::{
    control::BalancerStatus,
    plane::{ListenerReport, Protocol},
    spec::protocol_word,
};

/// Name, addresses, ports, how many backends are healthy, and addresses for a browser.
pub fn balancer_line(status: &BalancerStatus) -> String {
    let BalancerStatus { key, balancer, report, .. } = status;
    let listeners = report.as_ref().map(|report| report.listeners.as_slice()).unwrap_or_default();
    let backends = report.as_ref().map(|report| report.backends.as_slice()).unwrap_or_default();
    let addresses: Vec<_> = balancer.addresses.iter().map(ToString::to_string).collect();
    let ports: Vec<_> = listeners.iter().map(port).collect();
    let healthy = backends.iter().filter(|backend| backend.healthy == Some(true)).count();
    let urls: Vec<_> = listeners.iter().filter_map(url).collect();
    let line = format!(
        "{key}  {}  {}  {healthy}/{} healthy  {}",
        addresses.join(","),
        ports.join(","),
        backends.len(),
        urls.join(" ")
    );
    line.trim_end().to_owned()
}

fn port(listener: &ListenerReport) -> String {
    let name = format!("{}/{}", listener.port, protocol_word(listener.protocol));
    match listener.bound {
        Some(at) if at.port() == listener.port => name,
        Some(at) => format!("{name}=>{}", at.port()),
        None => format!("{name} ({})", listener.message),
    }
}

/// An address for a browser, where one is likely to help.
pub(crate) fn url(listener: &ListenerReport) -> Option<String> {
    let at = listener.bound.filter(|_| listener.protocol == Protocol::Tcp)?;
    let scheme = match listener.port {
        80 | 8080 => "http",
        443 => "https",
        _ => return None,
    };
    Some(format!("{scheme}://{}/", without_default(scheme, at)))
}

fn without_default(scheme: &str, at: SocketAddr) -> String {
    match (scheme, at.port()) {
        ("http", 80) | ("https", 443) if at.is_ipv4() => at.ip().to_string(),
        _ => at.to_string(),
    }
}
