//! The HTTPS port of cloudberth: health, metrics, configuration, and who may see them.
//!
//! Every request passes the [`Guard`], which asks the cluster who the caller is and whether they may see the page.
//! What the pages show is handed in as [`Pages`]; nothing here knows a controller or a cloud.
//!
//! ```text
//!   listen ──► Server::run ──► ConnectionLimiter ──► TLS ──► HTTP/1.1, HTTP/2 ──► Guard ──► Pages
//!                │                                                                ▲
//!                └── reloads certificates ───────────────── and authorities ──────┘  from files and the cluster
//! ```
//!
//! [`Server::plain`] is the same without TLS and guard: health and metrics for everybody, and nothing else.
//!
//! All of it can run on a [`Thread`] of its own: the pages only read what is known already, behind short locks, and
//! reviews of callers are sent from that thread too.
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
//! - At most 192 connections are open at once, 64 of one address; to accept one more, another is closed, silent ones
//!   first. A handshake and the first header have 5 s together, a header has at most 64 KiB, a response 30 s.
//! - At most 32 reviews of a kind are in flight and 128 wait, 32 of one address.

mod activity;
mod answer;
mod auth;
mod connection;
mod error;
mod health;
mod limiter;
mod listen;
mod metrics;
mod pages;
mod server;
mod slis;
mod streams;
mod thread;
mod tls;

pub use auth::{AlwaysAllow, Authentication, Authorization, Guard, Identity, ProxyHeaders};
pub use error::{Error, Result};
pub use health::{Check, CheckFn, Checks};
pub use listen::{Bind, listen};
pub use metrics::{Metrics, TABLE};
pub use pages::{GuardedPages, Pages, Verbosity};
pub use server::{Limits, Server};
pub use slis::SLIS;
pub use thread::Thread;
pub use tls::{
    settings::{Settled, TlsSettings},
    store::{CertificateSource, CertificateStore},
};
