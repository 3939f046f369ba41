//! Kubeconfig files.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::Error;

/// Writes one for the server at `base`, which `ca_file` vouches for, and says where it is.
pub(crate) fn write(path: PathBuf, base: &str, ca_file: &Path, user: &Value) -> Result<PathBuf, Error> {
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "e2e", "cluster": { "server": base, "certificate-authority": ca_file } }],
        "users": [{ "name": "e2e", "user": user }],
        "contexts": [{ "name": "e2e", "context": { "cluster": "e2e", "user": "e2e" } }],
        "current-context": "e2e",
    });
    fs::write(&path, config.to_string()).map_err(Error::io("cannot write", &path))?;
    Ok(path)
}
