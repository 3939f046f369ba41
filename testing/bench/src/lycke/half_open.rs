//! Clients that begin a TCP handshake and never end it.
//!
//! Such segments can be sent by everybody in a network of their own, so plane, backends and clients are all there.

use std::{fmt, io, net::SocketAddrV4, time::Duration};

use cloudberth_lycke::testing::half_open::{HalfOpen, in_a_network_of_its_own, why_no_network};
use tokio::process::Command;

use super::{
    BACKENDS,
    load::{Kind, ask, connect, measure as load},
    proxies::{Player, line},
    role::ONCE,
    trials::{Trial, plane},
};

const CLIENTS: u32 = 5_000;
const ROUNDS: u8 = 3;
const TIME: Duration = Duration::from_secs(3);
const OTHER: ([u8; 4], u16) = ([127, 78, 2, 2], 8080);

/// What was seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Seen {
    /// The requests per second of another load balancer, of those without half-open clients.
    ratio: f64,
    /// The fewest half-open connections that the kernel held.
    held: usize,
    /// How many clients of the same load balancer were served meanwhile, of [`ROUNDS`].
    served: u8,
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.ratio, self.held, self.served)
    }
}

impl Seen {
    fn read(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let (ratio, held) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(Self { ratio, held, served: words.next()?.parse().ok()? })
    }
}

/// Measures in a network of its own, if there can be one.
pub(crate) async fn trial() -> io::Result<Trial> {
    let what = format!("{CLIENTS} clients that never end their handshake on one load balancer");
    if let Some(why) = why_no_network() {
        return Ok(Trial::new(format!("{what}: not tried, there can be no network for them: {why}"), false));
    }
    let mut command = in_a_network_of_its_own(std::env::current_exe()?);
    command.args(["lycke-role", "half-open"]);
    let output = Command::from(command).kill_on_drop(true).output().await?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let said = String::from_utf8_lossy(&output.stdout);
    let Some(Seen { ratio, held, served }) = Seen::read(&said) else {
        return Err(io::Error::other(format!("not understood: {said:?}")));
    };
    let text = format!(
        "{what}, {held} of them held by the kernel: requests/s of another {ratio:.2} of what they are without, goal at \
         least 0.90; {served} of {ROUNDS} clients of the same one were served meanwhile"
    );
    Ok(Trial::new(text, ratio >= 0.9 && held > 0 && served == ROUNDS))
}

/// The measurement itself. The kernel keeps half-open connections for a minute, so each round has its own port.
pub(crate) async fn measure() -> io::Result<Seen> {
    let backends: Vec<_> = BACKENDS.iter().filter_map(|at| at.parse().ok()).collect();
    let mut roles = vec!["backends".to_owned()];
    roles.extend(BACKENDS.map(str::to_owned));
    let _backends = Player::start(&roles).await?;
    let mut plane = plane().await?;
    plane.tell(&line("other", 4_096, OTHER.into(), &backends)).await?;
    let mut clients = HalfOpen::new()?;
    let mut ratios = Vec::new();
    let mut seen = Seen { ratio: 0.0, held: usize::MAX, served: 0 };
    for round in 0..ROUNDS {
        let victim = SocketAddrV4::new([127, 78, 2, 1].into(), 8_080 + u16::from(round));
        plane.tell(&line("victim", 4_096, victim.into(), &backends)).await?;
        let alone = load(Kind::Requests, OTHER.into(), TIME).await?;
        clients.begin(victim, CLIENTS)?;
        let beside = load(Kind::Requests, OTHER.into(), TIME).await?;
        ratios.push(beside.rate / alone.rate.max(1.0));
        seen.held = seen.held.min(HalfOpen::held(victim)?);
        let served = async { ask(&mut connect(victim.into()).await?, ONCE).await };
        seen.served += u8::from(tokio::time::timeout(TIME, served).await.is_ok_and(|asked| asked.is_ok()));
    }
    plane.end().await?;
    ratios.sort_by(f64::total_cmp);
    seen.ratio = ratios.get(ratios.len() / 2).copied().unwrap_or_default();
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood() {
        let seen = Seen { ratio: 0.97, held: 4_097, served: 3 };
        assert_eq!(Seen::read(&seen.to_string()), Some(seen));
        assert_eq!(Seen::read("ready"), None);
    }
}
