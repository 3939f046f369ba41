//! Opening and closing listeners.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use tokio::{sync::oneshot, time::Instant};

use super::{Coordinator, RETRY, balancer::Balancer};
use crate::plane::{
    config::{BalancerKey, Listener},
    diff::Endpoint,
    low_ports::bind_or_shift,
    report::{ListenerFault, ListenerReport, PlaneEvent},
    socket::{
        inbox::{Command, Doomed, Inbox},
        listen::{Bound, bind, fault},
        shared::ListenerShared,
    },
};

/// A socket that should be there.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) listener: Listener,
    pub(crate) endpoint: Endpoint,
    pub(crate) bound: Option<Arc<ListenerShared>>,
    pub(crate) report: ListenerReport,
}

impl Slot {
    pub(crate) fn new(listener: Listener, address: IpAddr, endpoint: Endpoint) -> Self {
        let report = ListenerReport {
            protocol: listener.protocol,
            address,
            port: listener.port,
            bound: None,
            fault: None,
            message: String::new(),
        };
        Self { listener, endpoint, bound: None, report }
    }
}

impl Coordinator {
    /// Closes sockets that the configuration no longer has; their connections drain.
    pub(crate) async fn close_removed(&mut self, balancer: &mut Balancer, close: &[Endpoint]) {
        let (gone, kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut balancer.slots).into_iter().partition(|slot| close.contains(&slot.endpoint));
        balancer.slots = kept;
        let gone: Vec<_> = gone.into_iter().filter_map(|slot| Some((slot.endpoint, slot.bound?))).collect();
        for (_, listener) in &gone {
            self.drain(Doomed::Listener(listener.id), balancer.config.limits.drain);
        }
        self.close_listeners(gone).await;
    }

    /// Comes back when nobody listens there any more.
    pub(crate) async fn close_listeners(&mut self, listeners: Vec<(Endpoint, Arc<ListenerShared>)>) {
        let mut waiting = Vec::new();
        for (_, listener) in &listeners {
            for worker in &self.workers {
                let (closed, wait) = oneshot::channel();
                worker.send(Command::Close { listener: listener.id, closed });
                waiting.push(wait);
            }
        }
        for wait in waiting {
            // A worker that is gone listens nowhere.
            let _ = wait.await;
        }
        for (endpoint, _) in listeners {
            self.lender.take_back(endpoint);
        }
    }

    /// Tries to bind every socket that is not.
    pub(crate) fn bind_missing(&mut self, key: &BalancerKey) {
        let Some(mut balancer) = self.balancers.remove(key) else { return };
        let mut slots = std::mem::take(&mut balancer.slots);
        for slot in slots.iter_mut().filter(|slot| slot.bound.is_none()) {
            let report = self.bind_slot(&balancer, slot);
            if report == slot.report {
                continue;
            }
            slot.report = report.clone();
            let event = match report.bound {
                Some(_) => PlaneEvent::ListenerBound { listener: report },
                None => PlaneEvent::ListenerFailed { listener: report },
            };
            self.notify(key, event);
        }
        if self.retry.is_none() && slots.iter().any(|slot| slot.bound.is_none()) {
            self.retry = Some(Instant::now() + RETRY);
        }
        balancer.slots = slots;
        self.balancers.insert(key.clone(), balancer);
    }

    fn bind_slot(&mut self, balancer: &Balancer, slot: &mut Slot) -> ListenerReport {
        let Listener { protocol, port, .. } = slot.listener;
        let address = slot.report.address;
        let own = |other: u16| balancer.ports.contains_key(&(protocol, other));
        let lender = &mut self.lender;
        let bind_at = |at: u16| {
            let address = SocketAddr::new(address, at);
            let lent = (at == port).then(|| lender.lend(Endpoint { protocol, address })).flatten();
            lent.unwrap_or_else(|| bind(protocol, address))
        };
        let socket = bind_or_shift(port, balancer.config.limits.low_ports, own, bind_at);
        let outcome = socket.and_then(|(socket, shifted)| {
            let bound = self.hand_out(balancer, slot, socket);
            // A socket that nobody got is not lent.
            bound.map(|bound| (bound, shifted)).inspect_err(|_| self.lender.take_back(slot.endpoint))
        });
        let mut report =
            ListenerReport { bound: None, fault: None, message: String::new(), ..slot.report.clone() };
        match outcome {
            Ok((listener, shifted)) => {
                report.bound = Some(listener.bound);
                if shifted {
                    report.fault = Some(ListenerFault::Shifted);
                    report.message = format!(
                        "the process may not listen at port {port}; it listens at {} instead",
                        listener.bound
                    );
                }
                slot.bound = Some(listener);
            }
            Err(error) => {
                let owner = self.owner(slot.endpoint);
                let (found, message) = fault(&error, slot.endpoint.address, owner);
                (report.fault, report.message) = (Some(found), message);
            }
        }
        report
    }

    /// Which load balancer listens somewhere.
    fn owner(&self, endpoint: Endpoint) -> Option<BalancerKey> {
        let holds = |slot: &Slot| {
            slot.listener.protocol == endpoint.protocol && slot.report.bound == Some(endpoint.address)
        };
        let owner = self.balancers.iter().find(|(_, balancer)| balancer.slots.iter().any(holds));
        owner.map(|(key, _)| key.clone())
    }

    /// Gives a socket to the workers: TCP to all of them, UDP to one.
    fn hand_out(
        &mut self,
        balancer: &Balancer,
        slot: &Slot,
        socket: Bound,
    ) -> std::io::Result<Arc<ListenerShared>> {
        let port = balancer.ports.get(&(slot.listener.protocol, slot.listener.port));
        let port = port.map(Arc::clone).unwrap_or_default();
        let (id, bound) = (self.next_id(), socket.address()?);
        let listener = Arc::new(ListenerShared::new(id, Arc::clone(&balancer.shared), port, bound));
        listener.set_targets(balancer.targets(slot.listener, bound));
        match socket {
            Bound::Tcp(socket) => {
                // All or none: a socket that one worker holds on to would keep the port.
                let sockets =
                    self.workers.iter().map(|_| socket.try_clone()).collect::<Result<Vec<_>, _>>()?;
                for (worker, socket) in self.workers.iter().zip(sockets) {
                    worker.send(Command::Listen { listener: Arc::clone(&listener), socket });
                }
            }
            Bound::Udp(socket) => {
                if let Some(worker) = self.udp_worker(id) {
                    worker.send(Command::ListenUdp { listener: Arc::clone(&listener), socket });
                }
            }
        }
        Ok(listener)
    }

    /// The worker that has a UDP listener: one that is there, and always the same one as long as it is.
    pub(crate) fn udp_worker(&self, listener: u64) -> Option<&Arc<Inbox>> {
        let count = u64::try_from(self.workers.len()).ok()?;
        let first = usize::try_from(listener.checked_rem(count)?).ok()?;
        let (before, after) = self.workers.split_at_checked(first)?;
        after.iter().chain(before).find(|worker| !worker.is_gone())
    }

    /// Tries the listeners of all load balancers that are not bound.
    pub(crate) fn retry_listeners(&mut self) {
        self.retry = None;
        let missing = |balancer: &Balancer| balancer.slots.iter().any(|slot| slot.bound.is_none());
        let keys: Vec<_> =
            self.balancers.iter().filter(|(_, b)| missing(b)).map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.bind_missing(&key);
            if let Some(balancer) = self.balancers.get(&key) {
                balancer.publish();
            }
        }
    }
}
