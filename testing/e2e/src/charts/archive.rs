//! Charts, packed in memory.

use std::io::Write as _;

use flate2::{Compression, GzBuilder};
use serde_json::{Value, json};

/// A small chart. What it installs is there at once, so that Helm need not wait for anything that no controller does.
#[derive(Clone, Debug)]
pub struct Chart {
    name: String,
    version: String,
    templates: Vec<(&'static str, String)>,
}

/// What it was installed from and with, for tests to read. The name of the `ConfigMap` is that of the release.
const SETTINGS: &str = r#"apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}"}
data:
  version: {{ .Chart.Version | quote }}
  greeting: {{ .Values.greeting | quote }}
"#;

/// Helm takes a paused Deployment for ready.
const DEPLOYMENT: &str = r#"apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Release.Name }}", labels: {app.kubernetes.io/managed-by: "{{ .Release.Service }}"}}
spec:
  paused: true
  selector: {matchLabels: {app: "{{ .Release.Name }}"}}
  template:
    metadata: {labels: {app: "{{ .Release.Name }}"}}
    spec: {containers: [{name: main, image: "registry.example/image:{{ .Chart.Version }}"}]}
"#;

/// Where nothing runs pods, Helm waits for it until somebody says that it is ready.
const POD: &str = r#"apiVersion: v1
kind: Pod
metadata: {name: "{{ .Release.Name }}"}
spec: {containers: [{name: main, image: registry.example/image}]}
"#;

/// No server accepts it, but Helm does not know.
const REFUSED: &str = r#"apiVersion: v1
kind: ConfigMap
metadata: {name: "not-a-name-", labels: {bad: "no label!"}}
"#;

impl Chart {
    /// A chart with a `ConfigMap` in it.
    pub fn new(name: &str, version: &str) -> Self {
        let templates = vec![("settings.yaml", SETTINGS.to_owned())];
        Self { name: name.to_owned(), version: version.to_owned(), templates }
    }

    /// The same with a Deployment.
    #[must_use]
    pub fn with_deployment(mut self) -> Self {
        self.templates.push(("deployment.yaml", DEPLOYMENT.to_owned()));
        self
    }

    /// The same with something that does not become ready.
    #[must_use]
    pub fn that_hangs(mut self) -> Self {
        self.templates.push(("pod.yaml", POD.to_owned()));
        self
    }

    /// The same with something that every server refuses.
    #[must_use]
    pub fn that_is_refused(mut self) -> Self {
        self.templates.push(("refused.yaml", REFUSED.to_owned()));
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its version.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// `Chart.yaml`, as JSON.
    pub fn metadata(&self) -> Value {
        json!({"apiVersion": "v2", "name": self.name, "version": self.version, "type": "application"})
    }

    /// The chart as `helm package` makes it, and the same bytes each time.
    pub fn archive(&self) -> Vec<u8> {
        let mut tar = Vec::new();
        let mut add = |path: &str, text: &str| entry(&mut tar, &format!("{}/{path}", self.name), text);
        add("Chart.yaml", &self.metadata().to_string());
        add("values.yaml", "greeting: none\n");
        for (path, text) in &self.templates {
            add(&format!("templates/{path}"), text);
        }
        tar.extend([0; 1024]);
        let mut gzip = GzBuilder::new().mtime(0).write(Vec::new(), Compression::fast());
        // Writing to memory does not fail.
        gzip.write_all(&tar).and_then(|()| gzip.finish()).unwrap_or_default()
    }
}

/// A regular file in the ustar format.
fn entry(tar: &mut Vec<u8>, path: &str, text: &str) {
    let mut header = Vec::with_capacity(512);
    let mut field = |text: &str, width: usize| {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(width, 0);
        header.extend(bytes);
    };
    field(path, 100);
    field("0000644", 8);
    field("0000000", 8);
    field("0000000", 8);
    field(&format!("{:011o}", text.len()), 12);
    field("00000000000", 12);
    field("        ", 8);
    field("0", 1);
    field("", 100);
    field("ustar", 6);
    field("00", 2);
    field("", 247);
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    let sum = format!("{sum:06o}\0 ");
    for (place, byte) in header.iter_mut().skip(148).zip(sum.bytes()) {
        *place = byte;
    }
    tar.extend(header);
    tar.extend(text.as_bytes());
    tar.resize(tar.len().next_multiple_of(512), 0);
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn an_archive_is_one_that_others_can_read() {
        let archive = Chart::new("lb", "0.1.0").with_deployment().archive();
        let mut tar = Command::new("tar")
            .args(["-tzf", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        tar.stdin.take().unwrap().write_all(&archive).unwrap();
        let output = tar.wait_with_output().unwrap();
        assert!(output.status.success());
        let names =
            "lb/Chart.yaml\nlb/values.yaml\nlb/templates/settings.yaml\nlb/templates/deployment.yaml\n";
        assert_eq!(String::from_utf8(output.stdout).unwrap(), names);
        assert_eq!(
            archive,
            Chart::new("lb", "0.1.0").with_deployment().archive(),
            "the same bytes each time"
        );
    }
}
