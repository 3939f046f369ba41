//! This computer: its addresses, its limits, Vagrant, and the machines as seen from here.

use std::{io, net::IpAddr, time::Duration};

use rustix::process::{Resource, getrlimit};
use tokio::{
    net::{TcpListener, TcpStream},
    time::timeout,
};

use super::finding::Finding;
use crate::{
    addresses::Pools,
    inventory::{AddressMode, Inventory},
    vagrant::{self, Vagrant as _, VagrantCommand},
};

/// Fewer open files than this do not carry a busy load balancer.
const FEW_FILES: u64 = 4_096;
/// A machine on this computer or beside it answers in this time.
const ANSWER: Duration = Duration::from_secs(1);
/// kube-proxy's health port. Whether something listens there does not matter: a refusal is an answer too.
const ANY_PORT: u16 = 10_256;

/// What was seen of this computer.
#[derive(Debug)]
pub(super) struct Facts {
    mode: AddressMode,
    /// An address of the pool, and what came of binding it.
    block: Option<(IpAddr, Result<(), String>)>,
    low_ports: Result<(), io::ErrorKind>,
    /// How many files can be open, if there is a limit.
    files: Option<u64>,
    /// How many machines Vagrant told of; none if it is not asked.
    vagrant: Option<Result<usize, String>>,
    /// Ids and addresses of machines that do not answer.
    silent: Vec<(String, IpAddr)>,
    machines: usize,
}

pub(super) async fn gather(inventory: &Inventory) -> Facts {
    let mode = inventory.balancers.mode;
    let address = Pools::new(&inventory.balancers).of(mode).first();
    let mut block = None;
    let mut low_ports = Ok(());
    if let Some(address) = address {
        let bound = TcpListener::bind((address, 0)).await;
        block = Some((address, bound.map(drop).map_err(|why| why.to_string())));
        low_ports = TcpListener::bind((address, 80)).await.map(drop).map_err(|why| why.kind());
    }
    let vagrant = match &inventory.vagrant {
        None => None,
        Some(settings) => {
            let asked = timeout(vagrant::time_limit(settings), VagrantCommand.status(settings)).await;
            let answer = asked.unwrap_or_else(|_| Err("no answer in time".to_owned()));
            Some(answer.and_then(|output| vagrant::read_answer(&output)).map(|states| states.len()))
        }
    };
    let mut silent = Vec::new();
    for machine in inventory.machines.values() {
        let answer = timeout(ANSWER, TcpStream::connect((machine.backend, ANY_PORT))).await;
        let answers = match answer {
            Ok(Ok(_)) => true,
            Ok(Err(why)) => why.kind() == io::ErrorKind::ConnectionRefused,
            Err(_) => false,
        };
        if !answers {
            silent.push((machine.id.clone(), machine.backend));
        }
    }
    let files = getrlimit(Resource::Nofile).maximum;
    Facts { mode, block, low_ports, files, vagrant, silent, machines: inventory.machines.len() }
}

impl Facts {
    pub(super) fn judge(&self) -> Vec<Finding> {
        let mut findings = vec![self.judge_block(), self.judge_low_ports()];
        findings.push(match self.files {
            Some(files) if files < FEW_FILES => Finding::warning(
                "open files",
                format!("the process may have {files} files open; each connection takes two"),
                &["raise the hard limit: ulimit -Hn, or LimitNOFILE of a systemd unit"],
            ),
            Some(files) => Finding::ok("open files", format!("{files}")),
            None => Finding::ok("open files", "no limit"),
        });
        findings.push(match &self.vagrant {
            None => Finding::skipped("Vagrant", "the inventory does not use it"),
            Some(Ok(count)) => Finding::ok("Vagrant", format!("it knows the states of {count} machines")),
            Some(Err(why)) => Finding::problem(
                "Vagrant",
                why.clone(),
                "until it answers, the state of every machine is unknown; see that vagrant is in PATH",
            ),
        });
        findings.extend(self.silent.iter().map(|(id, address)| {
            Finding::warning(
                "backends",
                format!("machine {id} does not answer at {address}"),
                &["start it, or give its `backend` an address that this computer can reach"],
            )
        }));
        if self.silent.is_empty() {
            findings.push(Finding::ok("backends", format!("all {} machines can be reached", self.machines)));
        }
        findings
    }

    fn judge_block(&self) -> Finding {
        match &self.block {
            None => Finding::problem("addresses", "the pool is empty", "give loadBalancers.pool an address"),
            Some((address, Ok(()))) => Finding::ok("addresses", format!("{address} can be bound")),
            Some((address, Err(why))) => {
                let remedy = match self.mode {
                    AddressMode::Loopback => "use mode shared: only Linux has all of 127.0.0.0/8",
                    AddressMode::Shared | AddressMode::Pool => {
                        "add the address to an interface of this computer"
                    }
                };
                Finding::problem("addresses", format!("{address} cannot be bound: {why}"), remedy)
            }
        }
    }

    fn judge_low_ports(&self) -> Finding {
        match self.low_ports {
            Err(io::ErrorKind::PermissionDenied) => Finding::warning(
                "ports below 1024",
                "need a privilege: with lowPorts: shift, port 80 becomes 10080",
                &[
                    "grant it: sudo setcap cap_net_bind_service=+ep $(command -v cloudberth)",
                    "or lower the bar: sudo sysctl net.ipv4.ip_unprivileged_port_start=80",
                ],
            ),
            _ => Finding::ok("ports below 1024", "can be bound"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::finding::Level, *};

    #[test]
    fn every_obstacle_has_a_remedy() {
        let address: IpAddr = "127.77.0.1".parse().unwrap();
        let good = Facts {
            mode: AddressMode::Loopback,
            block: Some((address, Ok(()))),
            low_ports: Ok(()),
            files: Some(1 << 20),
            vagrant: None,
            silent: Vec::new(),
            machines: 4,
        };
        assert!(good.judge().iter().all(|finding| finding.remedies.is_empty()), "{:?}", good.judge());
        let bad = Facts {
            block: Some((address, Err("not available".into()))),
            low_ports: Err(io::ErrorKind::PermissionDenied),
            files: Some(1_024),
            vagrant: Some(Err("no such file".into())),
            silent: vec![("n-c2-1".into(), address)],
            ..good
        };
        let found = bad.judge();
        assert_eq!(found.len(), 5);
        assert!(found.iter().all(|finding| !finding.remedies.is_empty()), "{found:?}");
        let low = &found[1];
        assert_eq!((low.level, low.remedies.len()), (Level::Warning, 2), "CL-64 the two remedies");
        assert!(
            low.remedies[0].contains("setcap") && low.remedies[1].contains("ip_unprivileged_port_start"),
            "CL-64"
        );
    }

    #[tokio::test]
    async fn this_computer_can_be_looked_at() {
        let text = crate::inventory::Demo { clusters: 1, workers: 1, loopback: true }.inventory().unwrap();
        let inventory = crate::inventory::read(&text, "inv.yaml".as_ref()).unwrap();
        let facts = gather(&inventory).await;
        assert!(matches!(facts.block, Some((_, Ok(())))), "{facts:?}");
        assert!(facts.silent.is_empty(), "a refusal is an answer: {facts:?}");
    }
}
