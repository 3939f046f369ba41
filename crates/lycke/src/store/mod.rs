//! Where the state is written down.

mod directory;
mod file;
mod lock;

use std::{fmt, io};

pub use directory::{StateDirectory, default_directory};

use crate::plane::Answer;

/// Keeps the text of the state.
pub trait Store: fmt::Debug + Send + Sync {
    /// Writes the whole state down, and answers when it outlives a crash.
    fn save(&self, text: String) -> Answer<io::Result<()>>;
}

/// Keeps nothing: for tests and simulations.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoStore;

impl Store for NoStore {
    fn save(&self, _text: String) -> Answer<io::Result<()>> {
        Box::pin(async { Ok(()) })
    }
}
