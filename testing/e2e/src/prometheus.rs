//! A real Prometheus that scrapes one program.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kube_assets::PrometheusAssets;
use serde_json::Value;

use crate::control_plane::{PORT_ATTEMPTS, free_port};
use crate::{Answer, Client, Credentials, Error, Program, Request, eventually};

/// How long a start may take on a busy machine.
const STARTED_WITHIN: Duration = Duration::from_mins(2);
/// Once a second, so that a test need not wait. Targets are looked for every five seconds whatever is set here.
const CONFIG: &str = "\
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: ['RULES']
scrape_configs:
  - job_name: cloudberth
    scheme: https
    tls_config: {insecure_skip_verify: true}
    static_configs: [{targets: ['TARGET']}]
";

/// Prometheus, killed when this is dropped.
#[derive(Debug)]
pub struct Prometheus {
    program: Program,
    api: Client,
}

impl Prometheus {
    /// Starts it, and waits until it is ready. It evaluates `rules`, scrapes `target` (`127.0.0.1:10258`) under the job name
    /// `cloudberth`, and keeps its files in `dir`.
    pub async fn start(
        assets: &PrometheusAssets,
        dir: &Path,
        rules: &Path,
        target: &str,
    ) -> Result<Self, Error> {
        let write = |name: &str, text: &str| -> Result<PathBuf, Error> {
            let path = dir.join(name);
            fs::write(&path, text).map_err(Error::io("cannot write", &path))?;
            Ok(path)
        };
        let text = CONFIG.replace("RULES", &rules.to_string_lossy()).replace("TARGET", target);
        let config = write("prometheus.yaml", &text)?;
        let mut attempt = 1;
        loop {
            let port = free_port(dir)?;
            let args = [
                format!("--config.file={}", config.display()),
                format!("--storage.tsdb.path={}", dir.join("prometheus").display()),
                format!("--web.listen-address=127.0.0.1:{port}"),
            ];
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let mut program = Program::start_other(&assets.prometheus, &args, &[])?;
            let api = Client::new(format!("http://127.0.0.1:{port}"), "", &Credentials::Anonymous)?;
            match ready(&mut program, &api).await {
                Ok(()) => return Ok(Self { program, api }),
                Err(Error::Ended { log, .. }) if attempt < PORT_ATTEMPTS && log.contains("in use") => {
                    attempt += 1;
                }
                Err(why) => return Err(why),
            }
        }
    }

    /// What a query gives now: the values of `data.result`, or why there are none.
    pub async fn query(&self, query: &str) -> Result<Vec<Value>, String> {
        let text: String = query
            .bytes()
            .map(|byte| {
                if byte.is_ascii_alphanumeric() {
                    char::from(byte).to_string()
                } else {
                    format!("%{byte:02X}")
                }
            })
            .collect();
        let answer = self.ask(&format!("/api/v1/query?query={text}")).await?;
        let found = answer.json().pointer("/data/result").and_then(Value::as_array).cloned();
        found.ok_or_else(|| format!("{query}: {}", answer.json()))
    }

    /// The names of the alerts that fire, in order.
    pub async fn firing(&self) -> Result<Vec<String>, String> {
        let answer = self.ask("/api/v1/alerts").await?.json();
        let alerts = answer.pointer("/data/alerts").and_then(Value::as_array);
        let alerts = alerts.ok_or_else(|| answer.to_string())?;
        let fires = |alert: &&Value| alert.get("state").and_then(Value::as_str) == Some("firing");
        let name = |alert: &Value| alert.pointer("/labels/alertname")?.as_str().map(str::to_owned);
        let mut names: Vec<_> = alerts.iter().filter(fires).filter_map(name).collect();
        names.sort();
        Ok(names)
    }

    /// What it scrapes, and what came of it, for messages.
    pub async fn targets(&self) -> Result<String, String> {
        Ok(self.ask("/api/v1/targets").await?.json().to_string())
    }

    /// The lines that it has written.
    pub fn log(&self) -> Vec<String> {
        self.program.log()
    }

    async fn ask(&self, path: &str) -> Result<Answer, String> {
        self.api.send(&Request::get(path)).await.map_err(|why| why.to_string())
    }
}

async fn ready(program: &mut Program, api: &Client) -> Result<(), Error> {
    eventually(STARTED_WITHIN, "Prometheus is ready", async || {
        if !program.runs() {
            return Ok(Err(Error::Ended { program: "prometheus".into(), log: program.log().join("\n") }));
        }
        match api.send(&Request::get("/-/ready")).await {
            Ok(answer) if answer.status == 200 => Ok(Ok(())),
            Ok(answer) => Err(answer.json().to_string()),
            Err(why) => Err(why.to_string()),
        }
    })
    .await?
}
