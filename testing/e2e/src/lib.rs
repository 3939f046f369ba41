//! A real Kubernetes control plane on loopback, the embedded one beside it, and what runs against both.
//!
//! [`ControlPlane`] starts etcd and kube-apiserver, several API servers on one etcd if asked, and takes
//! everything down with it: on drop, on a panic, and also when the test process is killed. [`Client`] speaks
//! to it, and to anything else that serves the Kubernetes API. [`conformance`] replays one table of requests
//! on two servers and reports where their answers differ.
//!
//! A scenario is written against a [`Cluster`], which is one or the other and comes from a [`ClusterFactory`]. [`Program`]
//! runs the shipped program, [`Manager`] runs it as the manager of a cluster, [`Elector`] is a client-go candidate for its
//! Lease, [`PodPrograms`] run pods, [`ChartServer`] has charts for Helm, [`Prometheus`] scrapes it, [`Rights`] says what its
//! role allows, and [`eventually`] waits.

mod calls;
mod charts;
mod client;
mod cluster;
pub mod conformance;
mod container;
mod control_plane;
mod elector;
mod embedded;
mod error;
mod kubeconfig;
mod kubectl;
mod manager;
mod manifests;
mod pki;
mod pods;
mod program;
mod prometheus;
mod proxy;
mod rbac;
mod supervise;
mod wait;

pub use calls::Row;
pub use charts::{Chart, ChartServer};
pub use client::{Answer, Client, Credentials, Request, Watch};
pub use cluster::{Account, Cluster, ClusterFactory, ClusterKind};
pub use container::Container;
pub use control_plane::{ControlPlane, Options};
pub use elector::{Contest, Elector, Event, two_at_once};
pub use embedded::Embedded;
pub use error::Error;
pub use kubectl::{Following, Kubectl, Output};
pub use manager::{Manager, container_of, manifest_of, manifests_of};
pub use pods::PodPrograms;
pub use program::{Program, chores, shipped};
pub use prometheus::Prometheus;
pub use rbac::Rights;
pub use wait::{eventually, throughout};
