//! What can go wrong around a control plane.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why a control plane did not start or a request was not answered.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or directory of the control plane.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which path.
        path: PathBuf,
        /// How it failed.
        source: io::Error,
    },
    /// A program ended before it was ready.
    #[error("{program} ended before it was ready; the end of its log:\n{log}")]
    Ended {
        /// Its name.
        program: String,
        /// The last lines it wrote.
        log: String,
    },
    /// A program was not ready in time.
    #[error("{program} was not ready in time ({why}); the end of its log:\n{log}")]
    Late {
        /// Its name.
        program: String,
        /// What the last question brought back.
        why: String,
        /// The last lines it wrote.
        log: String,
    },
    /// Certificates could not be made.
    #[error("cannot make certificates: {0}")]
    Certificates(#[from] rcgen::Error),
    /// TLS could not be set up.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// The embedded API could not be put on a port.
    #[error("cannot serve the embedded API: {0}")]
    Serve(#[from] embedded_kube::ServeError),
    /// A request could not be built: its method, path or a header is malformed.
    #[error("malformed request: {0}")]
    Request(#[from] http::Error),
    /// The server could not be reached or broke off.
    #[error("{what}: {why}")]
    Transport {
        /// The request.
        what: String,
        /// How it failed, with its causes.
        why: String,
    },
    /// No answer, or no watch event, in time.
    #[error("{what}: nothing came in time")]
    Deadline {
        /// What was waited for.
        what: String,
    },
    /// Something that was to come about did not.
    #[error("{what}: not within {within:?}; last seen: {last}")]
    Never {
        /// What was waited for.
        what: String,
        /// How long.
        within: Duration,
        /// What was there instead.
        last: String,
    },
    /// The server refused something that the surroundings of a test need.
    #[error("{what}: answered {status}: {body}")]
    Refused {
        /// The request.
        what: String,
        /// The status code.
        status: u16,
        /// What it said.
        body: String,
    },
    /// Pods were to run in an embedded cluster, or without the programs for it.
    #[error("pods run only in a real cluster whose factory has the programs for it")]
    NoPods,
    /// Manifests that cannot be read.
    #[error("manifests: {0}")]
    Manifest(String),
    /// The program under test could not be built.
    #[error("cannot build the program: {0}")]
    Build(String),
    /// A watch sent something that is not JSON.
    #[error("a watch sent a line that is not JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl Error {
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { what, path, source }
    }

    pub(crate) fn transport(what: &str, error: &dyn std::error::Error) -> Self {
        let mut why = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            why.push_str(": ");
            why.push_str(&error.to_string());
            cause = error.source();
        }
        Self::Transport { what: what.to_owned(), why }
    }
}
