//! The controllers: thin shells of watches, queues and patches around the decisions in core.
//!
//! | module | keeps |
//! |---|---|
//! | [`clouds`] | the providers that are at work in the cluster, each with its [`inventory`] of instances |
//! | [`context`] | what every controller works with |
//! | [`node`] | nodes: initialised, and kept current |
//! | [`lifecycle`] | the shutdown mark, and the removal of nodes whose instances are gone |
//! | [`routes`] | the routes to the pods of every node |
//! | [`service`] | a load balancer for every Service that wants one |
//! | [`dry_run`] | what each of them would do, without doing it |
//! | [`controller_set`] | all of them, for one term of leadership |

pub mod clouds;
pub mod context;
pub mod controller_set;
pub mod dry_run;
mod effects;
pub mod inventory;
pub mod lifecycle;
pub mod node;
pub mod routes;
pub mod service;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A panic while a lock was held is caught at the worker that met it; what it left behind is still usable.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
