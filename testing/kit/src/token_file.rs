//! A credential that can be replaced, as a mounted Secret is, and what may happen while it is.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use sim_kit::Harm;

use crate::seeded::FaultPlan;

/// A file with a token, which is removed with the last clone.
#[derive(Clone, Debug)]
pub struct TokenFile(Arc<Place>);

#[derive(Debug)]
struct Place(PathBuf);

impl TokenFile {
    /// The token of the cluster's own account.
    pub const OWN: &str = "first";

    /// A file in this folder, with the token of the cluster's own account.
    pub fn new(folder: &str) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("token-{}-{number}", std::process::id());
        let file = Self(Arc::new(Place(PathBuf::from(folder).join(name))));
        file.set(Self::OWN);
        file
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0.0
    }

    /// Replaces the token.
    pub fn set(&self, token: &str) {
        fs::write(self.path(), token).unwrap();
    }

    /// The first request for this operation is refused, and there is another token by now: that of an account that knows
    /// nothing of what the request is about. Later requests come with the right token again.
    pub fn swap_during(&self, operation: &'static str) -> FaultPlan {
        let (token, mut sent) = (self.clone(), 0);
        Box::new(move |request| {
            sent += usize::from(request.operation == operation);
            match sent {
                1 if request.operation == operation => {
                    token.set("another account's");
                    Some(Harm::status(401))
                }
                2 if request.operation == operation => {
                    token.set(Self::OWN);
                    Some(Harm::NotFound)
                }
                _ => None,
            }
        })
    }
}

/// The first request for this operation comes with the credential of an account that knows nothing of what it is about;
/// all others come with the right one.
pub fn first_sent_elsewhere(operation: &'static str) -> FaultPlan {
    let mut sent = false;
    Box::new(move |request| {
        let first = !sent && request.operation == operation;
        sent |= first;
        first.then_some(Harm::NotFound)
    })
}

impl Drop for Place {
    fn drop(&mut self) {
        // What is left of a test is in the build directory, where it harms nobody.
        let _ = fs::remove_file(&self.0);
    }
}
