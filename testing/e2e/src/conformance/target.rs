//! What the table can be replayed on.

use crate::{Answer, Client, Error, Request, Watch};

/// A server of the Kubernetes API.
pub trait Target {
    /// Sends one request and reads the whole answer.
    fn send(&self, request: &Request) -> impl Future<Output = Result<Answer, Error>>;

    /// Starts a watch; a refusal is an answer too.
    fn watch(&self, request: &Request) -> impl Future<Output = Result<Result<Watch, Answer>, Error>>;
}

impl Target for Client {
    async fn send(&self, request: &Request) -> Result<Answer, Error> {
        Client::send(self, request).await
    }

    async fn watch(&self, request: &Request) -> Result<Result<Watch, Answer>, Error> {
        Client::watch(self, request).await
    }
}
