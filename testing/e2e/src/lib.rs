//! A real Kubernetes control plane on loopback, the embedded one beside it, and what runs against both.
//!
//! [`ControlPlane`] starts etcd and kube-apiserver, several API servers on one etcd if asked, and takes
//! everything down with it: on drop, on a panic, and also when the test process is killed. [`Client`] speaks
//! to it, and to anything else that serves the Kubernetes API. [`conformance`] replays one table of requests
//! on two servers and tells where their answers differ.
//!
//! A scenario is written against a [`World`], which is one or the other: [`Ground`] makes them. [`Program`] is the
//! shipped program in it, [`Manager`] the program at the work that it is for, [`Elector`] a client-go candidate for its
//! Lease, [`Rights`] what its role allows, and [`eventually`] the way to wait.

mod calls;
mod client;
pub mod conformance;
mod control_plane;
mod elector;
mod embedded;
mod error;
mod gate;
mod kubeconfig;
mod kubectl;
mod manager;
mod manifests;
mod pki;
mod program;
mod rbac;
mod supervise;
mod wait;
mod world;

pub use calls::Row;
pub use client::{Answer, Client, Credentials, Request, Watch};
pub use control_plane::{ControlPlane, Options};
pub use elector::{Contest, Elector, Event, two_at_once};
pub use embedded::Embedded;
pub use error::Error;
pub use kubectl::{Following, Kubectl, Output};
pub use manager::{Manager, manifests_of};
pub use program::{Program, shipped};
pub use rbac::Rights;
pub use wait::{eventually, throughout};
pub use world::{Account, Ground, Kind, World};
