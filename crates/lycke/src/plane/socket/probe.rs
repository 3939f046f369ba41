//! One health check.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::plane::diff::Probe;

/// Where kube-proxy tells whether it is well.
const KUBE_PROXY_PORT: u16 = 10_256;

/// Checks a backend. An error says what was asked and what came back.
pub(crate) async fn check(probe: &Probe, address: IpAddr, limit: Duration) -> Result<(), String> {
    match probe {
        Probe::Connect(port) => match timeout(limit, TcpStream::connect((address, *port))).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(in_words(&error)),
            Err(_) => Err("connection attempt timed out".to_owned()),
        },
        Probe::Get { port, path } => {
            let asked = format!("GET http://{}{path}", SocketAddr::new(address, *port));
            match timeout(limit, get(SocketAddr::new(address, *port), path)).await {
                Ok(Ok(status)) if (200..300).contains(&status) => Ok(()),
                Ok(Ok(status)) => Err(format!("{asked} answered {status}")),
                Ok(Err(error)) => Err(format!("{asked}: {}", in_words(&error))),
                Err(_) => Err(format!("{asked} timed out")),
            }
        }
        // Not every node has kube-proxy. One that answers, and answers badly, is not well.
        Probe::KubeProxy => match timeout(limit, get(SocketAddr::new(address, KUBE_PROXY_PORT), "/healthz"))
            .await
        {
            Ok(Ok(status)) if !(200..300).contains(&status) => Err(format!("kube-proxy answered {status}")),
            _ => Ok(()),
        },
    }
}

/// The status of the answer to a GET.
async fn get(server: SocketAddr, path: &str) -> io::Result<u16> {
    let mut stream = TcpStream::connect(server).await?;
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {server}\r\nUser-Agent: cloudlycke-health-check\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    // "HTTP/1.1 200" is all that matters.
    let mut start = [0; 12];
    stream.read_exact(&mut start).await?;
    status(&start).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no HTTP answer"))
}

fn status(start: &[u8]) -> Option<u16> {
    let text = str::from_utf8(start).ok()?.strip_prefix("HTTP/1.")?;
    text.get(2..)?.parse().ok()
}

/// An error without the number that the system has for it.
fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::ConnectionReset => "connection reset".to_owned(),
        io::ErrorKind::UnexpectedEof => "no answer".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_is_the_second_word() {
        let table: [(&str, &[u8], Option<u16>); 5] = [
            ("CL-61 fine", b"HTTP/1.1 200", Some(200)),
            ("CL-61 older", b"HTTP/1.0 503", Some(503)),
            ("CL-61 newer", b"HTTP/2.0 200", None),
            ("CL-61 no number", b"HTTP/1.1 abc", None),
            ("CL-61 no HTTP", b"SSH-2.0-Open", None),
        ];
        for (case, start, want) in table {
            assert_eq!(status(start), want, "{case}");
        }
    }
}
