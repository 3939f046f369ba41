//! The HTTPS port of cloudberth: health, metrics, configuration, and who may see them.
//!
//! Every request passes the [`Guard`], which delegates to the cluster who asks and whether they may, and then finds its
//! page. What the pages show is handed in as [`Pages`]; nothing here knows a controller or a cloud.
//!
//! ```text
//!   listen ──► Server::run ──► Room ──► TLS ──► HTTP/1.1, HTTP/2 ──► Guard ──► Pages
//!                │                                                   ▲
//!                └── keeps certificates ──────── and authorities ────┘  from files and from the cluster
//! ```
//!
//! All of it can run on a [`Thread`] of its own: the pages only look at what is known already, behind short locks, and
//! what is asked of the cluster about callers is asked from that thread too.
//!
//! # Differences from the programs that cloudberth replaces
//!
//! - A certificate of our own making has an ECDSA key (P-256) and not an RSA one, and one that lives in memory is
//!   renewed a month before it ends.
//! - TLS is that of rustls: nothing below 1.2, no suites without forward secrecy, groups 29, 23 and 24. A suite or
//!   group that cannot be had is refused at the start, by name. Authorities and clients need version 3 certificates.
//! - `/livez`, `/readyz` and single checks (`/healthz/<check>`) are served.
//! - There is nothing under `/debug/pprof/`.
//! - A token that the cluster refused is remembered for as long as one that it accepted.
//! - At most 192 connections are open at once, 64 of one address; for one more, another is closed, silent ones first.
//!   A handshake and the first header have 5 s together, a header has at most 64 KiB, an answer 30 s.
//! - At most 32 reviews of a kind are under way and 128 wait, 32 of one address.

mod answer;
mod auth;
mod connection;
mod error;
mod health;
mod listen;
mod metrics;
mod pages;
mod pulse;
mod room;
mod server;
mod slis;
mod streams;
mod thread;
mod tls;

pub use auth::{AlwaysAllow, Authentication, Authorization, Guard, Identity, ProxyHeaders};
pub use error::{Error, Result};
pub use health::{Check, CheckFn, Checks};
pub use listen::{Bind, listen};
pub use metrics::Metrics;
pub use pages::{Pages, Verbosity};
pub use server::{Limits, Server};
pub use thread::Thread;
pub use tls::{
    settings::{Settled, TlsSettings},
    store::{CertificateSource, CertificateStore},
};
