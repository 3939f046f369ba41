//! Pages for probes.

use http::StatusCode;
use serde::Serialize;

use super::{ApiResponse, answer};
use crate::{
    control::{Control, Readiness},
    refusal::Refusal,
};

pub(super) fn health() -> ApiResponse {
    answer::with_type(StatusCode::OK, "text/plain", "ok\n".to_owned())
}

pub(super) fn ready(control: &Control) -> Result<ApiResponse, Refusal> {
    match control.readiness() {
        Readiness::Ready => Ok(answer::with_type(StatusCode::OK, "text/plain", "ok\n".to_owned())),
        Readiness::InventoryInvalid(faults) => {
            Err(Refusal::new(503, "inventory_invalid", faults.to_string()))
        }
        Readiness::Restoring => Err(Refusal::new(503, "not_ready", "load balancers are being restored")),
        Readiness::Closing => Err(Refusal::new(503, "not_ready", "the service is about to end")),
    }
}

#[derive(Debug, Serialize)]
struct Version {
    name: &'static str,
    version: &'static str,
}

pub(super) fn version() -> ApiResponse {
    answer::json(StatusCode::OK, &Version { name: "cloudlycke", version: env!("CARGO_PKG_VERSION") })
}
