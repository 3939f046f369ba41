//! `cargo xtask image --check` and `--start`: builds the image twice, and starts its program in a sandbox beside a simulated cluster
//! and a simulated cloud.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::make::{Made, MadeImage, make};
use super::rootfs::certificates;
use super::sandbox::{self, Around, Inside};
use super::servers::{Client, name_server, tls_front};
use super::variant::{Arch, Variant};
use super::{Options, inspect};
use crate::archive::{read, unpack};
use crate::workspace::Workspace;
use crate::{Result, Verdict};

/// Of the cloud. Nobody else knows the name.
const NAME: &str = "cloud.image-check.test";
/// Where the name server is. It is asked at port 53, always.
const NAME_SERVER: &str = "127.0.53.53";
const NODES: usize = 3;
/// A deadline ends a hang and measures nothing.
const PATIENCE: Duration = Duration::from_mins(2);
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The most bytes of a program, in whichever image.
const PROGRAM_LIMIT: usize = 15_000_000;
/// The most bytes of a compressed image without Cloudlycke and helm.
const IMAGE_LIMIT: usize = 20_000_000;

pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<Verdict> {
    let first = make(workspace, options, None)?;
    print!("{}", first.report());
    let large = too_large(&first.variant, &first.images);
    for what in &large {
        println!("{what}");
    }
    let scratch = first.dir.join("check");
    let _ = fs::remove_dir_all(&scratch);
    let mut verdict = Verdict::Good;
    if options.check {
        println!("   once more, from nothing");
        let again = Options { output: Some(scratch.join("image")), ..options.clone() };
        let made = make(workspace, &again, Some(&scratch.join("target")))?;
        verdict = compare(&first, &made);
    }
    if verdict == Verdict::Good {
        verdict = started(workspace, &first, &scratch)?;
    }
    let _ = fs::remove_dir_all(&scratch);
    Ok(if large.is_empty() { verdict } else { Verdict::Bad })
}

/// What is over its goal, one line each.
fn too_large(variant: &str, images: &[MadeImage]) -> Vec<String> {
    let mut found = Vec::new();
    for MadeImage { arch, program, compressed, .. } in images {
        if *program > PROGRAM_LIMIT {
            found.push(format!("{arch}: the program has {program} bytes, the goal is {PROGRAM_LIMIT}"));
        }
        if variant == Variant::Plain.name() && *compressed > IMAGE_LIMIT {
            found.push(format!("{arch}: the image has {compressed} bytes, the goal is {IMAGE_LIMIT}"));
        }
    }
    found
}

fn compare(first: &Made, second: &Made) -> Verdict {
    let mut verdict = Verdict::Good;
    for (one, other) in first.images.iter().zip(&second.images) {
        for (name, digest) in &one.files {
            if other.files.get(name) != Some(digest) {
                println!("{name} differs: {digest} and then {:?}", other.files.get(name));
                verdict = Verdict::Bad;
            }
        }
        if one.digest == other.digest {
            println!("built twice, equal: {} {}", one.arch, one.digest);
        }
    }
    if first.images.len() != second.images.len() {
        verdict = Verdict::Bad;
    }
    verdict
}

/// Starts the program of the image for this machine's processor.
fn started(workspace: &Workspace, made: &Made, scratch: &Path) -> Result<Verdict> {
    let here = Arch::ALL.into_iter().find(|arch| arch.processor() == std::env::consts::ARCH);
    let ours = made.images.iter().find(|image| here.is_some_and(|arch| arch.name() == image.arch));
    for image in &made.images {
        if here.is_none_or(|arch| arch.name() != image.arch) {
            println!(
                "skipped: the program for {} is not started, this machine has another processor",
                image.arch
            );
        }
    }
    let Some(ours) = ours else { return Ok(Verdict::Good) };
    if let Some(why) = sandbox::impossible() {
        println!("skipped: the program is not started in a sandbox: {why}");
        return Ok(Verdict::Good);
    }
    let archive = read(&made.dir.join(format!("{}.tar", ours.file)))?;
    let [image] =
        inspect::images(&unpack(&archive)?)?.try_into().map_err(|_| "not one image in the archive")?;
    let root = scratch.join("root");
    sandbox::unpack(&root, &image.content)?;

    let program = simulator(workspace)?;
    let kubeconfig = scratch.join("admin.kubeconfig");
    let kube = Outside::start(&program, &kube_flags(&kubeconfig))?;
    let cloud = Outside::start(
        &program,
        &["sim", "cloud", "--provider=cloudscale", "--listen=127.0.0.1:0", "--instances=3"],
    )?;
    let front = tls_front(NAME, cloud.address)?;
    name_server(format!("{NAME_SERVER}:53").parse().map_err(|_| "no address")?, NAME)?;
    let kubeconfig =
        fs::read_to_string(&kubeconfig).map_err(|why| format!("{}: {why}", kubeconfig.display()))?;
    let admin = client(kube.address, &kubeconfig)?;
    for number in 1..=NODES {
        let (status, body) = admin.ask("POST", "/api/v1/nodes", &node(number).to_string())?;
        if status != 201 {
            return Err(format!("the simulated cluster does not take a node: {status} {body}"));
        }
    }
    let mut env: Vec<(String, String)> = image
        .config
        .settings
        .env
        .iter()
        .filter_map(|line| line.split_once('='))
        .filter(|(name, _)| *name != "PATH")
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    env.push(("CLOUDSCALE_ACCESS_TOKEN".to_owned(), "any".to_owned()));
    env.push(("CLOUDSCALE_API_URL".to_owned(), format!("https://{NAME}:{}/", front.address.port())));
    let called = [
        "/bin/cloudscale-cloud-controller-manager",
        "--kubeconfig=/tmp/kubeconfig",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        "--secure-port=0",
    ];
    let own = certificates();
    let with_ours = format!("{own}{}", front.authority);
    let resolv_conf = format!("nameserver {NAME_SERVER}\n");
    let start = |name: &str, certificates: &str| {
        let around = Around { kubeconfig: &kubeconfig, resolv_conf: &resolv_conf, certificates, env: &env };
        sandbox::start(&root, &scratch.join(name), &image, &called, &around)
    };

    // First with the certificates of the image alone: a cloud of a strange authority must not be believed.
    let mut inside = start("strange", &own)?;
    until(&mut inside, "the program refuses the certificate of a strange authority", &|inside| {
        Ok(inside.log().contains("UnknownIssuer"))
    })?;
    drop(inside);
    if initialised(&admin)? != 0 {
        return Err("nodes were initialised by a cloud that must not be believed".to_owned());
    }
    let mut inside = start("known", &with_ours)?;
    until(&mut inside, "the program resolves a name, talks TLS and initialises the nodes", &|_| {
        Ok(initialised(&admin)? == NODES)
    })?;
    inside.confined()?;
    println!(
        "started in a sandbox as 65532 on a read-only root: resolved {NAME}, TLS with a test authority added to the image's own certificates, {NODES} nodes initialised"
    );
    println!("and with the image's own certificates alone, the test authority was refused");
    Ok(Verdict::Good)
}

fn until(inside: &mut Inside, what: &str, done: &dyn Fn(&Inside) -> Result<bool>) -> Result<()> {
    let mut waited = Duration::ZERO;
    loop {
        if done(inside)? {
            return Ok(());
        }
        let ended = inside.ended();
        if ended.is_some() || waited >= PATIENCE {
            let end = ended.unwrap_or_else(|| "it still runs".to_owned());
            return Err(format!("not seen: {what} ({end}); its log:\n{}", inside.log()));
        }
        sleep(LOOK_EVERY);
        waited += LOOK_EVERY;
    }
}

fn kube_flags(kubeconfig: &Path) -> Vec<String> {
    let file = format!("--write-kubeconfig={}", kubeconfig.display());
    ["sim", "kube", "--listen=127.0.0.1:0", &file].map(str::to_owned).to_vec()
}

fn node(number: usize) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": format!("node-{number}")},
        "spec": {"taints": [
            {"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"}
        ]},
    })
}

/// How many nodes have their cloud's id and no taint any more.
fn initialised(admin: &Client) -> Result<usize> {
    let (status, body) = admin.ask("GET", "/api/v1/nodes", "")?;
    let list: Value = serde_json::from_str(&body).map_err(|why| format!("{status} {why}: {body}"))?;
    let nodes = list.get("items").and_then(Value::as_array).into_iter().flatten();
    Ok(nodes.filter(|node| is_initialised(node)).count())
}

fn is_initialised(node: &Value) -> bool {
    let id = node.pointer("/spec/providerID").and_then(Value::as_str).unwrap_or_default();
    let taints = node.pointer("/spec/taints").and_then(Value::as_array).into_iter().flatten();
    let waits = |taint: &Value| {
        taint.get("key").and_then(Value::as_str).is_some_and(|key| key.ends_with("/uninitialized"))
    };
    id.starts_with("cloudscale://") && !taints.into_iter().any(waits)
}

/// The client that a kubeconfig describes, which the simulated cluster wrote.
fn client(address: SocketAddr, kubeconfig: &str) -> Result<Client> {
    let field = |name: &str| {
        let lines = kubeconfig.split([',', '\n']).map(|line| line.trim_matches([' ', '-', '{', '}', '"']));
        let mut pairs = lines.filter_map(|line| line.split_once(':'));
        let found = pairs.find(|(key, _)| key.trim().trim_matches('"') == name);
        found.map(|(_, value)| value.trim().trim_matches('"').to_owned())
    };
    let missing = |name: &str| format!("the kubeconfig of the simulated cluster has no {name}");
    let data = field("certificate-authority-data").ok_or_else(|| missing("certificate-authority-data"))?;
    let pem = STANDARD.decode(data).map_err(|why| format!("certificate-authority-data: {why}"))?;
    Ok(Client {
        address,
        name: "localhost".to_owned(),
        authority: String::from_utf8_lossy(&pem).into_owned(),
        token: field("token").ok_or_else(|| missing("token"))?,
    })
}

/// The program with its simulations, as people build it, or the one that is named.
fn simulator(workspace: &Workspace) -> Result<PathBuf> {
    if let Some(given) = std::env::var_os("CLOUDBERTH_PROGRAM").filter(|value| !value.is_empty()) {
        return Ok(PathBuf::from(given));
    }
    println!("   the simulated cluster and cloud");
    let args = [
        "build",
        "--package",
        "cloudberth",
        "--bin",
        "cloudberth",
        "--message-format=json-render-diagnostics",
    ];
    let text = crate::metadata::output(workspace, &args)?;
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut files = messages.filter_map(|message| Some(PathBuf::from(message.get("executable")?.as_str()?)));
    files.next_back().ok_or_else(|| "cargo built no program".to_owned())
}

/// A program outside of the sandbox, which says where it listens.
#[derive(Debug)]
struct Outside {
    child: Child,
    address: SocketAddr,
}

impl Outside {
    fn start<S: AsRef<std::ffi::OsStr>>(program: &Path, args: &[S]) -> Result<Self> {
        let failed = |why| format!("{}: {why}", program.display());
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut line).map_err(failed)?;
        }
        let Some(address) = address(&line) else {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("{} does not say where it listens: {line}", program.display()));
        };
        Ok(Self { child, address })
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// From `listening on https://127.0.0.1:6443, kubeconfig in …`.
fn address(line: &str) -> Option<SocketAddr> {
    let rest = line.split_once("://")?.1;
    let end = rest.find(|c: char| c == ',' || c == '/' || c.is_whitespace()).unwrap_or(rest.len());
    rest.get(..end)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_over_its_goal_is_told() {
        let made = |program, compressed| MadeImage {
            arch: "amd64".to_owned(),
            file: "f".to_owned(),
            digest: "d".to_owned(),
            compressed,
            program,
            files: std::collections::BTreeMap::new(),
        };
        let table = [
            ("plain", made(PROGRAM_LIMIT, IMAGE_LIMIT), 0),
            ("plain", made(PROGRAM_LIMIT + 1, IMAGE_LIMIT + 1), 2),
            ("rancher", made(PROGRAM_LIMIT, IMAGE_LIMIT + 1), 0),
            ("lycke", made(PROGRAM_LIMIT + 1, IMAGE_LIMIT), 1),
        ];
        for (variant, image, want) in table {
            let found = too_large(variant, &[image]);
            assert_eq!(found.len(), want, "{variant}: {found:?}");
        }
    }

    #[test]
    fn where_a_simulation_listens_is_read_from_its_first_line() {
        let expected = Some("127.0.0.1:6443".parse().unwrap());
        for line in [
            "listening on https://127.0.0.1:6443, kubeconfig in /x",
            "listening on http://127.0.0.1:6443/ as cloudscale",
            "http://127.0.0.1:6443\n",
        ] {
            assert_eq!(address(line), expected, "{line}");
        }
        assert_eq!(address("no port"), None);
    }

    #[test]
    fn a_node_is_initialised_with_an_id_and_without_the_taint() {
        let mut sample = node(1);
        assert!(!is_initialised(&sample));
        sample["spec"]["providerID"] = json!("cloudscale://1");
        assert!(!is_initialised(&sample));
        sample["spec"]["taints"] = json!([{"key": "other/taint"}]);
        assert!(is_initialised(&sample));
    }

    #[test]
    fn a_kubeconfig_is_read() {
        let text = format!(
            "clusters:\n- cluster:\n    certificate-authority-data: {}\n    server: https://127.0.0.1:1\n  name: sim\nusers:\n- name: a\n  user:\n    token: secret\n",
            STANDARD.encode("PEM")
        );
        let client = client("127.0.0.1:1".parse().unwrap(), &text).unwrap();
        assert_eq!((client.authority.as_str(), client.token.as_str()), ("PEM", "secret"));
        assert!(
            super::client("127.0.0.1:1".parse().unwrap(), "")
                .unwrap_err()
                .contains("certificate-authority-data")
        );
    }
}
