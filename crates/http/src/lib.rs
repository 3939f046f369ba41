//! One REST client for every cloud.
//!
//! A provider describes single [`Operation`]s and decodes single answers. What all clouds need is done here, once:
//! deadlines and the leader's claim at the moment of sending, retries where they are safe, the rate limit of a
//! credential, tokens that change while the program runs, listings that know whether they are complete, errors that
//! quote the server and never a secret.
//!
//! ```text
//!   provider ──► Operation ──► Client ──► Authenticator, Budget ──► Transport ──► hyper, or a test's router
//!                                 ▲                                     │
//!                  Lookup, Listing, Outcome ◄── decode, explain ◄── Answer
//! ```
//!
//! # What follows from an answer
//!
//! | answer | a read gives | a write gives |
//! |---|---|---|
//! | 2xx that decodes | the value | `Done` |
//! | 2xx that does not | `Temporary` | `Unknown` |
//! | 404 about the object | `Absent` where a lookup was asked for, else `NotFound` | `Failed`, or `Done` for a removal |
//! | 401, 403 | `Unauthorised` | `Failed` |
//! | 409; 400, 422; 429 | `Conflict`; `UserInput`; `Throttled` | `Failed` |
//! | 408, 5xx, lost connection, half a body, no answer in time | `Temporary` | `Unknown` |
//! | 5xx by which this cloud is known to say that nothing was done | `Temporary` | `Failed` |
//! | no connection at all | `Temporary` | `Failed` |
//! | there is no claim | not asked | not sent: `Failed`, `Cancelled` |
//! | the claim is about to end | not asked | not sent: `Failed`, `Temporary` |
//! | the claim ended under way | not asked | `Unknown` |
//!
//! A write that had no effect for certain (429, nothing done, no connection) is retried a few times like a read, unless
//! the server asks for a longer wait. Once one attempt of a write is in doubt, a later failure does not remove the doubt.
//!
//! A 404 counts only for the credential that it was sent to. If attempts of one call used different credentials, or
//! another one is in force when the answer arrives, the 404 may be about the wrong account: a read gives `Temporary`, a
//! write gives `Unknown`, and a listing is short. Access tokens that one [`OAuth`] client gets one after the other are of
//! one account, so they count as one credential.

mod answer;
mod attempt;
mod auth;
mod base;
mod body;
mod budget;
mod classify;
mod client;
mod env;
mod explain;
mod factory;
mod file;
mod grant;
mod item;
mod lazy;
mod listing;
mod oauth;
mod observe;
mod operation;
mod pager;
mod proxy;
mod resolver;
mod retry;
pub mod surroundings;
mod tags;
#[cfg(feature = "testing")]
pub mod testing;
mod token;
mod transport;
mod wire;
pub mod yaml;

pub use answer::Answer;
pub use auth::{Anonymous, Authenticator, Authorization};
pub use base::Base;
pub use budget::{Budget, Permit};
pub use classify::Dialect;
pub use client::{Builder, Client};
pub use env::{Env, Variable};
pub use explain::explain;
pub use factory::{GivenFlags, NOWHERE, Notes, OpenResult, ProviderContext, ProviderFactory};
pub use item::{Flawed, Item};
pub use lazy::LazyListing;
pub use oauth::{Grant, OAuth, OAuthSettings};
pub use observe::{Attempt, Observer, Unobserved};
pub use operation::{Operation, Read, Write};
pub use pager::{Array, Envelope, LinkHeader, Next, Numbered, Page, Pager};
pub use proxy::Proxies;
pub use resolver::{NoResolver, Resolver, StaticResolver};
pub use retry::{Policy, retry_after};
pub use token::TokenSource;
pub use transport::{AnswerBody, RequestBody, Transport, TransportError};
pub use wire::{Roots, connect, in_time};
