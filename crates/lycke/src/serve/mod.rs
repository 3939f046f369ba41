//! The service as a part of a process: what it refuses to start with, what it follows, and how it ends.

mod port;
mod process;
mod report;
mod watch;

use std::{
    fmt,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use cloudberth_core::{Clock, Secret};
use tokio::sync::Notify;

pub use port::accept;
pub use process::{Ended, run};
pub use report::balancer_line;

use crate::{
    addresses::Pools,
    control::{Control, Parts, read_file},
    events::EventLog,
    inventory::Inventory,
    plane::Plane,
    store::StateDirectory,
    vagrant::Vagrant,
};

/// Why the service does not start. Nothing is bound then; the process ends with [`Refused::EXIT_CODE`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub String);

impl Refused {
    /// What the process ends with.
    pub const EXIT_CODE: u8 = 2;
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A service that is about to start: its inventory is valid and the state directory is its own.
pub struct Prepared {
    inventory: Inventory,
    file: PathBuf,
    directory: StateDirectory,
    events: EventLog,
    clock: Arc<dyn Clock>,
}

impl Prepared {
    /// Reads the inventory and takes the state directory, in this order: a file with faults touches nothing.
    pub fn new(file: &Path, state_directory: &Path, clock: Arc<dyn Clock>) -> Result<Self, Refused> {
        let inventory = read_file(file).map_err(|faults| Refused(faults.to_string()))?;
        let pools = Pools::new(&inventory.balancers);
        let directory = StateDirectory::open(state_directory, &pools).map_err(Refused)?;
        let events = EventLog::new(Arc::clone(&clock));
        Ok(Self { inventory, file: file.to_owned(), directory, events, clock })
    }

    /// What happens is told here; the plane is to be given the same.
    pub fn events(&self) -> &EventLog {
        &self.events
    }

    /// Open TCP connections of the process, as the inventory has them; 0 means as many as its files allow.
    pub fn connections_total(&self) -> usize {
        self.inventory.balancers.connections_total
    }

    /// The service on this plane. Its load balancers carry traffic once [`Control::restore`] has ended.
    pub fn start(self, plane: Arc<dyn Plane>) -> Control {
        let Self { inventory, file, directory, events, clock } = self;
        let StateDirectory { store, balancers } = directory;
        Control::new(Parts { inventory, file, balancers, plane, store, events }, clock)
    }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared")
            .field("file", &self.file)
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

/// Follows the inventory file and Vagrant; never ends. The file is read again whenever it changes, and whenever `reload` is
/// notified.
pub async fn follow(control: &Control, vagrant: &dyn Vagrant, reload: &Notify) {
    tokio::join!(
        watch::follow_file(control, reload),
        control.follow_vagrant(vagrant),
        control.follow_silence()
    );
}

/// Whoever can reach the port can do everything, so without a token only this computer may.
pub fn check_listen(listen: SocketAddr, token: Option<&Secret>) -> Result<(), Refused> {
    if listen.ip().is_loopback() || token.is_some() {
        return Ok(());
    }
    Err(Refused(format!("--listen {listen} is not on loopback, so a token is needed: give a --token-file")))
}

/// The token in a file, without white space around it.
pub fn read_token(file: &Path) -> Result<Secret, Refused> {
    let wrong = |why: String| Refused(format!("--token-file {}: {why}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|why| wrong(why.to_string()))?;
    Secret::new(&text).map_err(|why| wrong(why.message().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_needs_no_token() {
        let token = Secret::new("x").unwrap();
        let table = [
            ("127.0.0.1:7733", false, true),
            ("127.9.9.9:0", false, true),
            ("[::1]:7733", false, true),
            ("0.0.0.0:7733", false, false),
            ("192.168.20.1:7733", false, false),
            ("[::]:7733", false, false),
            ("192.168.20.1:7733", true, true),
        ];
        for (listen, has_token, want) in table {
            let checked = check_listen(listen.parse().unwrap(), has_token.then_some(&token));
            assert_eq!(checked.is_ok(), want, "CL-69 {listen} {has_token}");
        }
    }

    #[test]
    fn a_token_file_has_a_token() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("token");
        assert!(read_token(&file).is_err(), "CL-69 there is none");
        std::fs::write(&file, " \n").unwrap();
        assert!(read_token(&file).unwrap_err().0.contains("empty"), "CL-69");
        std::fs::write(&file, " s3cr3t\n").unwrap();
        assert_eq!(read_token(&file).unwrap().expose(), "s3cr3t", "CL-69");
    }
}
