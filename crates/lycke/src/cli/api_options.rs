//! Where the API is.

use std::path::PathBuf;

use clap::Args;
use cloudberth_core::Secret;
use cloudberth_http::surroundings::environment;

use super::{Failure, client::Client, output::Output};
use crate::serve::read_token;

const DEFAULT_URL: &str = "http://127.0.0.1:7733";

#[derive(Debug, Args)]
pub(super) struct ApiOptions {
    /// The API; by default `CLOUDLYCKE_API_URL`, else `http://127.0.0.1:7733`.
    #[arg(long, value_name = "URL")]
    api_url: Option<String>,
    /// A file with the token; by default the token is in `CLOUDLYCKE_TOKEN`.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// How it is printed.
    #[arg(long, value_enum, default_value_t)]
    pub(super) output: Output,
}

impl ApiOptions {
    pub(super) fn client(&self) -> Result<Client, Failure> {
        let environment = environment();
        let url = self.api_url.as_deref().or(environment.get("CLOUDLYCKE_API_URL").map(String::as_str));
        let token = match &self.token_file {
            Some(file) => Some(read_token(file).map_err(|why| Failure::new(why.0))?),
            None => environment
                .get("CLOUDLYCKE_TOKEN")
                .filter(|token| !token.is_empty())
                .map(|token| Secret::new(token).map_err(|why| Failure::new(why.message())))
                .transpose()?,
        };
        Client::new(url.unwrap_or(DEFAULT_URL), token)
    }
}
