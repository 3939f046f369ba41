//! What runs pods in a real cluster: scheduler, controller manager, and kwok in place of kubelets.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::control_plane::SERVICE_RANGE;
use crate::{Cluster, Error, Program};

/// What kwok does to nodes and pods.
const STAGES: &str = include_str!("pods/stages.yaml");
/// Pods have addresses of this range, where nobody listens.
const POD_RANGE: &str = "10.244.0.0/16";
/// How long a node may be silent before Kubernetes says that it is not ready: six times as long as kwok usually is.
const SILENT_FOR: &str = "30s";
/// kwok renews the Lease of a node four times in this many seconds.
const NODE_LEASE: u32 = 20;
/// How many lines of each log are shown after a failure.
const LINES_SHOWN: usize = 15;

/// kube-scheduler and kube-controller-manager of one cluster, and a kwok for each node.
///
/// Pods become Running because kwok says so: no container runs. All are killed when this is dropped; the ends of their
/// logs are printed then, unless [`PodPrograms::end`] was called.
#[derive(Debug)]
pub struct PodPrograms {
    control_loops: [Program; 2],
    kubelets: BTreeMap<String, Program>,
    kwok: PathBuf,
    kwok_args: [String; 3],
    well: bool,
}

impl PodPrograms {
    /// Starts scheduler and controller manager. They need a real cluster, made by a factory that has the programs.
    pub fn start(cluster: &Cluster) -> Result<Self, Error> {
        let (plane, assets) = cluster.for_pods().ok_or(Error::NoPods)?;
        let file = |name: &str| plane.dir().join(name).display().to_string();
        let start = |program: &Path, kubeconfig: &Path, further: &[String]| {
            let mut args = vec![
                format!("--kubeconfig={}", kubeconfig.display()),
                "--leader-elect=false".to_owned(),
                // Nobody asks them anything.
                "--secure-port=0".to_owned(),
            ];
            args.extend_from_slice(further);
            Program::start_other(program, &args.iter().map(String::as_str).collect::<Vec<_>>(), &[])
        };
        let scheduler = start(&assets.scheduler, &plane.certificate_kubeconfig("scheduler")?, &[])?;
        let controller_manager = start(
            &assets.controller_manager,
            &plane.certificate_kubeconfig("controller-manager")?,
            &[
                "--cloud-provider=external".to_owned(),
                "--use-service-account-credentials=true".to_owned(),
                format!("--service-account-private-key-file={}", file("accounts.key")),
                format!("--root-ca-file={}", file("ca.crt")),
                "--allocate-node-cidrs=true".to_owned(),
                format!("--cluster-cidr={POD_RANGE}"),
                format!("--service-cluster-ip-range={SERVICE_RANGE}"),
                format!("--node-monitor-grace-period={SILENT_FOR}"),
            ],
        )?;
        let stages = plane.dir().join("kwok-stages.yaml");
        fs::write(&stages, STAGES).map_err(Error::io("cannot write", &stages))?;
        let kwok_args = [
            format!("--kubeconfig={}", plane.certificate_kubeconfig("kwok")?.display()),
            format!("--config={}", stages.display()),
            format!("--node-lease-duration-seconds={NODE_LEASE}"),
        ];
        Ok(Self {
            control_loops: [scheduler, controller_manager],
            kubelets: BTreeMap::new(),
            kwok: assets.kwok.clone(),
            kwok_args,
            well: false,
        })
    }

    /// Starts the stand-in for the kubelet of a node, which somebody else creates.
    pub fn start_kubelet(&mut self, node: &str) -> Result<(), Error> {
        let single = format!("--manage-single-node={node}");
        let args: Vec<&str> = self.kwok_args.iter().chain([&single]).map(String::as_str).collect();
        let kubelet = Program::start_other(&self.kwok, &args, &[])?;
        self.kubelets.insert(node.to_owned(), kubelet);
        Ok(())
    }

    /// Kills the stand-in of a node: from now on the node is silent.
    pub fn stop_kubelet(&mut self, node: &str) {
        self.kubelets.remove(node);
    }

    /// Kills all of them. They did their work, so that nobody has to see their logs.
    pub fn end(mut self) {
        self.well = true;
    }
}

impl Drop for PodPrograms {
    fn drop(&mut self) {
        if self.well {
            return;
        }
        for program in self.control_loops.iter().chain(self.kubelets.values()) {
            let log = program.log();
            let shown = log.get(log.len().saturating_sub(LINES_SHOWN)..).unwrap_or_default();
            #[expect(clippy::print_stderr, reason = "whoever reads of a failure needs it")]
            {
                eprintln!("the end of the log of {}:\n  {}", program.name(), shown.join("\n  "));
            }
        }
    }
}
