//! A real Kubernetes control plane on loopback, and the checks that run against it.
//!
//! [`ControlPlane`] starts etcd and kube-apiserver, several API servers on one etcd if asked, and takes
//! everything down with it: on drop, on a panic, and also when the test process is killed. [`Client`] speaks
//! to it, and to anything else that serves the Kubernetes API. [`conformance`] replays one table of requests
//! on two servers and tells where their answers differ.

mod client;
pub mod conformance;
mod control_plane;
mod embedded;
mod error;
mod kubectl;
mod pki;
mod supervise;

pub use client::{Answer, Client, Credentials, Request, Watch};
pub use control_plane::{ControlPlane, Options};
pub use embedded::Embedded;
pub use error::Error;
pub use kubectl::{Following, Kubectl, Output};
