//! helm on a real server.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use cloudberth_e2e::{ControlPlane, Request, eventually};
use serde_json::json;
use tokio::process::Command;

/// It ends a hang and measures nothing.
const SOON: Duration = Duration::from_secs(120);

/// helm as administrator, with its files in a directory of the control plane.
#[derive(Debug)]
pub(crate) struct Helm {
    program: PathBuf,
    kubeconfig: PathBuf,
    home: PathBuf,
    /// The directory that it works in.
    here: PathBuf,
}

impl Helm {
    pub(crate) fn of(plane: &ControlPlane, here: &Path) -> Self {
        Self {
            program: kube_assets::helm(&mut |line| eprintln!("{line}")).unwrap(),
            kubeconfig: plane.kubeconfig(),
            home: plane.dir().to_path_buf(),
            here: here.to_path_buf(),
        }
    }

    /// Whether it succeeded, and all that it said.
    pub(crate) async fn run(&self, args: &[&str]) -> (bool, String) {
        let output = Command::new(&self.program)
            .args(args)
            .current_dir(&self.here)
            .env_clear()
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", &self.home)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&said).into_owned())
    }

    pub(crate) async fn does(&self, args: &[&str]) -> String {
        let (ok, said) = self.run(args).await;
        assert!(ok, "helm {args:?}: {said}");
        said
    }
}

pub(crate) async fn make_namespace(plane: &ControlPlane, name: &str) {
    let object = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    let made = plane.send(&Request::post("/api/v1/namespaces", &object)).await.unwrap();
    assert!(made.status < 300, "{made:?}");
}

pub(crate) async fn has_its_own_namespaces(plane: &ControlPlane) {
    eventually(SOON, "the server has made its own namespaces", async || {
        let found = plane
            .send(&Request::get("/api/v1/namespaces/kube-system"))
            .await
            .map_err(|why| why.to_string())?;
        if found.status == 200 { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await
    .unwrap();
}
