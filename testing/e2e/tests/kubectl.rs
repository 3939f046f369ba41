//! What a person sees who drives a cluster with `kubectl`: the same on a real server and on the embedded one.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
// The output is for people.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod support;
#[path = "support/terminal.rs"]
mod terminal;

use std::time::Duration;

use cloudberth_e2e::{ControlPlane, Embedded, Kubectl, Options, eventually};
use support::assets;
use terminal::Terminal;

const NODE: &str = r#"
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {node-role.kubernetes.io/control-plane: ""}}
spec: {providerID: "fake://n1"}
"#;

const COMPLETE_NODE: &str = r#"
apiVersion: v1
kind: Node
metadata: {name: n3, labels: {tier: front}, annotations: {example.com/rack: "7"}}
spec:
  podCIDR: 10.244.3.0/24
  taints: [{key: dedicated, value: db, effect: NoExecute}, {key: node.kubernetes.io/not-ready, effect: NoSchedule}]
status:
  addresses: [{type: InternalIP, address: 10.0.0.3}, {type: InternalIP, address: 10.0.1.3}, {type: Hostname, address: n3}]
  capacity: {cpu: "4", memory: 8Gi, pods: "110"}
  conditions: [{type: Ready, status: "True", reason: KubeletReady, message: ready}]
  nodeInfo: {kubeletVersion: v1.37.1}
"#;

const TAINTED_NODE: &str = r#"
apiVersion: v1
kind: Node
metadata: {name: n4}
spec: {taints: [{key: node.cloudprovider.kubernetes.io/uninitialized, value: "true", effect: NoSchedule}]}
"#;

const LIST: &str = r"
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: box}, data: {a: b}}
- {apiVersion: v1, kind: Service, metadata: {name: listed}, spec: {ports: [{port: 80}], selector: {a: b}}}
";

const LIST_WITH_MISTAKES: &str = r"
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Service, metadata: {name: wrong}, spec: {slector: {a: b}, ports: [{name: x}]}}
- {apiVersion: v1, kind: Node, metadata: {name: wrong}, spec: {taints: [{key: a}]}, status: {capacity: [1]}}
- {apiVersion: example.com/v1, kind: Widget, metadata: {name: wrong}}
";

const SERVICE: &str = r"
apiVersion: v1
kind: Service
metadata: {name: web, labels: {team: a}}
spec:
  type: LoadBalancer
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: 8080}]
";

const DEFINITION: &str = r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: pools.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Pool, plural: pools, shortNames: [pl]}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, required: [size], properties: {size: {type: integer}}}}
";

const POOL: &str = r"
apiVersion: example.com/v1
kind: Pool
metadata: {name: blue}
spec: {size: 1}
";

const EVENT: &str = r#"
apiVersion: v1
kind: Event
metadata: {name: web.1, namespace: default}
involvedObject: {kind: Service, namespace: default, name: web, uid: UID}
reason: EnsuringLoadBalancer
message: Ensuring load balancer
type: Normal
source: {component: service-controller}
count: 1
firstTimestamp: "2026-01-02T03:04:05Z"
lastTimestamp: "2026-01-02T03:04:05Z"
"#;

const READY: &str = r#"{"status":{
  "addresses":[{"type":"InternalIP","address":"10.0.0.1"},{"type":"ExternalIP","address":"192.0.2.1"}],
  "nodeInfo":{"kubeletVersion":"v1.37.1","osImage":"Debian","kernelVersion":"6.12","containerRuntimeVersion":"containerd://2.2","architecture":"amd64","bootID":"b","kubeProxyVersion":"","machineID":"m","operatingSystem":"linux","systemUUID":"s"},
  "conditions":[{"type":"Ready","status":"True","reason":"KubeletReady","message":"ready",
    "lastHeartbeatTime":"2026-01-02T03:04:05Z","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}"#;

const NOT_READY: &str = r#"{"status":{"conditions":[{"type":"Ready","status":"False"}]}}"#;

#[tokio::test]
async fn on_a_real_server() {
    let plane = ControlPlane::start(&assets(), &Options::default()).await.unwrap();
    tour(&plane.kubectl_command()).await;
}

#[tokio::test]
async fn on_the_embedded_api() {
    let embedded = Embedded::start().await.unwrap();
    tour(&embedded.kubectl_command(&assets().kubectl)).await;
}

/// Every stop asserts the words that are printed; what differs from run to run (ages, addresses, ports) is
/// replaced by its name.
async fn tour(kubectl: &Kubectl) {
    let at = Terminal::new(kubectl);
    applying(&at).await;
    nodes(&at).await;
    services(&at).await;
    patches(&at).await;
    descriptions(&at).await;
    deletion(&at).await;
    watching(&at).await;
    deployments(&at).await;
    custom_kinds(&at).await;
    around(&at).await;
    println!("{} commands", at.finish());
}

/// The same manifest again and again.
async fn applying(at: &Terminal<'_>) {
    // Its status is kept when it is created, and what was added to its labels since is not touched.
    at.feed("apply -f -", COMPLETE_NODE, &["node/n3 created"]).await;
    at.feed("apply -f -", COMPLETE_NODE, &["node/n3 unchanged"]).await;
    at.run("label node n3 zone=a", &["node/n3 labeled"]).await;
    at.feed("apply -f -", COMPLETE_NODE, &["node/n3 unchanged"]).await;
    at.run("delete node n3", &["node \"n3\" deleted"]).await;
    // The server adds a taint to those given, and the second apply takes it away again.
    at.feed("apply -f -", TAINTED_NODE, &["node/n4 created"]).await;
    at.feed("apply -f -", TAINTED_NODE, &["node/n4 configured"]).await;
    at.feed("apply -f -", TAINTED_NODE, &["node/n4 unchanged"]).await;
    at.run("delete node n4", &["node \"n4\" deleted"]).await;
}

async fn nodes(at: &Terminal<'_>) {
    at.feed("apply -f -", NODE, &["node/n1 created"]).await;
    at.feed("apply -f -", NODE, &["node/n1 unchanged"]).await;
    at.run(
        "get nodes -o wide",
        &[
            "NAME STATUS ROLES AGE VERSION INTERNAL-IP EXTERNAL-IP OS-IMAGE KERNEL-VERSION CONTAINER-RUNTIME",
            "n1 Unknown control-plane (age) <none> <none> <unknown> <unknown> <unknown>",
        ],
    )
    .await;
    at.run("taint nodes n1 node.kubernetes.io/not-ready:NoSchedule-", &["node/n1 untainted"]).await;
    at.words(&["patch", "node", "n1", "--subresource=status", "-p", READY], &["node/n1 patched"]).await;
    at.run(
        "get nodes -o wide",
        &[
            "NAME STATUS ROLES AGE VERSION INTERNAL-IP EXTERNAL-IP OS-IMAGE KERNEL-VERSION CONTAINER-RUNTIME",
            "n1 Ready control-plane (age) v1.37.1 10.0.0.1 192.0.2.1 Debian 6.12 (amd64) containerd://2.2",
        ],
    )
    .await;
    at.run("get no n1", &["NAME STATUS ROLES AGE VERSION", "n1 Ready control-plane (age) v1.37.1"]).await;

    at.run("taint nodes n1 dedicated=db:NoSchedule", &["node/n1 tainted"]).await;
    at.refused(
        "taint nodes n1 dedicated=web:NoSchedule",
        &["error: node n1 already has dedicated taint(s) with same effect(s) and --overwrite is false"],
    )
    .await;
    at.run("taint nodes n1 dedicated=web:NoSchedule --overwrite", &["node/n1 modified"]).await;
    at.run("cordon n1", &["node/n1 cordoned"]).await;
    at.run("cordon n1", &["node/n1 already cordoned"]).await;
    at.run(
        "get nodes",
        &["NAME STATUS ROLES AGE VERSION", "n1 Ready,SchedulingDisabled control-plane (age) v1.37.1"],
    )
    .await;
    at.run("label node n1 zone=a", &["node/n1 labeled"]).await;
    at.refused("label node n1 zone=b", &["error: 'zone' already has a value (a), and --overwrite is false"])
        .await;
    at.run("label node n1 zone=b --overwrite", &["node/n1 labeled"]).await;
    at.run("label node n1 zone=b", &["node/n1 not labeled"]).await;
    at.run("get nodes -l zone=a", &["No resources found"]).await;
    at.run("get nodes -l zone=b -o name", &["node/n1"]).await;
    at.run(
        "describe node n1",
        &[
            "Name: n1",
            "Roles: control-plane",
            "Labels: node-role.kubernetes.io/control-plane=",
            "zone=b",
            "Annotations: <none>",
            "CreationTimestamp: (time)",
            "Taints: dedicated=web:NoSchedule",
            "Unschedulable: true",
            "Lease: Failed to get lease: leases.coordination.k8s.io \"n1\" not found",
            "Conditions:",
            "Type Status LastHeartbeatTime LastTransitionTime Reason Message",
            "---- ------ ----------------- ------------------ ------ -------",
            "Ready True Fri, 02 Jan 2026 03:04:05 +0000 Fri, 02 Jan 2026 03:04:05 +0000 KubeletReady ready",
            "Addresses:",
            "InternalIP: 10.0.0.1",
            "ExternalIP: 192.0.2.1",
            "System Info:",
            "Machine ID: m",
            "System UUID: s",
            "Boot ID: b",
            "Kernel Version: 6.12",
            "OS Image: Debian",
            "Operating System: linux",
            "Architecture: amd64",
            "Container Runtime Version: containerd://2.2",
            "Kubelet Version: v1.37.1",
            "ProviderID: fake://n1",
            "Non-terminated Pods: (0 in total)",
            "Namespace Name CPU Requests CPU Limits Memory Requests Memory Limits Age",
            "--------- ---- ------------ ---------- --------------- ------------- ---",
            "Allocated resources:",
            "(Total limits may be over 100 percent, i.e., overcommitted.)",
            "Resource Requests Limits",
            "-------- -------- ------",
            "cpu 0 (0%) 0 (0%)",
            "memory 0 (0%) 0 (0%)",
            "ephemeral-storage 0 (0%) 0 (0%)",
            "Events: <none>",
        ],
    )
    .await;
    at.run("uncordon n1", &["node/n1 uncordoned"]).await;
    let moved = r#"{"spec":{"providerID":"fake://n2"}}"#;
    at.words_refused(
        &["patch", "node", "n1", "-p", moved],
        &["The Node \"n1\" is invalid: spec.providerID: Invalid value: null: field cannot be modified once set"],
    )
    .await;
}

async fn services(at: &Terminal<'_>) {
    at.feed("apply -f -", SERVICE, &["service/web created"]).await;
    at.run(
        "get svc web -o wide",
        &[
            "NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE SELECTOR",
            "web LoadBalancer (ip) <pending> 80:(port)/TCP (age) app=web",
        ],
    )
    .await;
    at.feed("apply -f -", &SERVICE.replace("port: 80,", "port: 81,"), &["service/web configured"]).await;
    let uid = at.text("get svc web -o jsonpath={.metadata.uid}").await;
    at.feed("create -f -", &EVENT.replace("UID", &uid), &["event/web.1 created"]).await;
    at.run("annotate svc web example.com/speed=fast", &["service/web annotated"]).await;
    at.run("annotate svc web example.com/speed-", &["service/web annotated"]).await;
    at.run("annotate svc web example.com/speed=slow", &["service/web annotated"]).await;
    at.run(
        "describe svc web",
        &[
            "Name: web",
            "Namespace: default",
            "Labels: team=a",
            "Annotations: example.com/speed: slow",
            "Selector: app=web",
            "Type: LoadBalancer",
            "IP Family Policy: SingleStack",
            "IP Families: IPv4",
            "IP: (ip)",
            "IPs: (ip)",
            "Port: http 81/TCP",
            "TargetPort: 8080/TCP",
            "NodePort: http (port)/TCP",
            "Endpoints: <none>",
            "Session Affinity: None",
            "External Traffic Policy: Cluster",
            "Internal Traffic Policy: Cluster",
            "Events:",
            "Type Reason Age From Message",
            "---- ------ ---- ---- -------",
            "Normal EnsuringLoadBalancer (age) service-controller Ensuring load balancer",
        ],
    )
    .await;
    at.run(
        "get events --field-selector involvedObject.name=web",
        &[
            "LAST SEEN TYPE REASON OBJECT MESSAGE",
            "(age) Normal EnsuringLoadBalancer service/web Ensuring load balancer",
        ],
    )
    .await;
}

async fn patches(at: &Terminal<'_>) {
    let strategic = r#"{"spec":{"ports":[{"port":443,"name":"https"}]}}"#;
    at.words(&["patch", "svc", "web", "-p", strategic], &["service/web patched"]).await;
    at.words(&["patch", "svc", "web", "-p", strategic], &["service/web patched (no change)"]).await;
    let merge = r#"{"metadata":{"labels":{"team":null}},"spec":{"sessionAffinity":"ClientIP"}}"#;
    at.words(&["patch", "svc", "web", "--type=merge", "-p", merge], &["service/web patched"]).await;
    let json = r#"[{"op":"test","path":"/spec/sessionAffinity","value":"ClientIP"},{"op":"replace","path":"/spec/externalTrafficPolicy","value":"Local"}]"#;
    at.words(&["patch", "svc", "web", "--type=json", "-p", json], &["service/web patched"]).await;
    at.run(
        "get svc web -o jsonpath={.metadata.labels}{.spec.ports[*].name}{.spec.sessionAffinity}{.spec.externalTrafficPolicy}",
        &["https httpClientIPLocal"],
    )
    .await;

    let ingress = r#"{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.9"}]}}}"#;
    let publish = ["patch", "svc", "web", "--subresource=status", "-p", ingress];
    tokio::join!(
        at.words(
            &[
                "wait",
                "svc/web",
                "--for=jsonpath={.status.loadBalancer.ingress[0].ip}=192.0.2.9",
                "--timeout=3m"
            ],
            &["service/web condition met"],
        ),
        at.words(&publish, &["service/web patched"]),
    );
    at.run(
        "get svc web",
        &[
            "NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE",
            "web LoadBalancer (ip) 192.0.2.9 443:(port)/TCP,81:(port)/TCP (age)",
        ],
    )
    .await;

    at.feed_refused(
        "create -f -",
        &SERVICE.replace("selector:", "slector:"),
        &["Error from server (BadRequest): error when creating \"STDIN\": Service in version \"v1\" cannot be handled as a Service: strict decoding error: unknown field \"spec.slector\""],
    )
    .await;
    at.feed_refused(
        "create -f -",
        &SERVICE.replace("name: web,", "name: web2,").replace("port: 80,", "port: 80000,"),
        &["The Service \"web2\" is invalid: spec.ports[0].port: Invalid value: 80000: must be between 1 and 65535, inclusive"],
    )
    .await;
    at.feed_refused(
        "create -f -",
        SERVICE,
        &["Error from server (AlreadyExists): error when creating \"STDIN\": services \"web\" already exists"],
    )
    .await;
    at.run("label svc web team=b --dry-run=server", &["service/web labeled (server dry run)"]).await;
    at.run("get svc -l team", &["No resources found in default namespace."]).await;
}

/// What kubectl looks up before it sends anything.
async fn descriptions(at: &Terminal<'_>) {
    at.feed("apply -f -", LIST, &["configmap/box created", "service/listed created"]).await;
    at.feed("apply -f -", LIST, &["configmap/box unchanged", "service/listed unchanged"]).await;
    let deleted = [
        "configmap \"box\" deleted from default namespace",
        "service \"listed\" deleted from default namespace",
    ];
    at.feed("delete -f -", LIST, &deleted).await;
    let mistakes = [
        r#"error: error validating "STDIN": error validating data:"#,
        r#"[ValidationError(Service.spec.ports[0]): missing required field "port" in io.k8s.api.core.v1.ServicePort,"#,
        r#"ValidationError(Service.spec): unknown field "slector" in io.k8s.api.core.v1.ServiceSpec,"#,
        r#"ValidationError(Node.spec.taints[0]): missing required field "effect" in io.k8s.api.core.v1.Taint,"#,
        r#"ValidationError(Node.status.capacity): invalid type for io.k8s.api.core.v1.NodeStatus.capacity: got "array", expected "map"];"#,
        "if you choose to ignore these errors, turn validation off with --validate=false",
    ];
    at.feed_refused("apply -f -", LIST_WITH_MISTAKES, &[&mistakes.join(" ")]).await;
    for version in ["v1", "example.com/v1"] {
        let unknown = format!("apiVersion: {version}\nkind: Widget\nmetadata: {{name: w}}\n");
        let refusal = format!(
            "error: resource mapping not found for name: \"w\" namespace: \"\" from \"STDIN\": \
             no matches for kind \"Widget\" in version \"{version}\""
        );
        for command in ["apply -f -", "create -f -"] {
            at.feed_refused(command, &unknown, &[&refusal, "ensure CRDs are installed first"]).await;
        }
    }
}

async fn deletion(at: &Terminal<'_>) {
    let hold = r#"[{"op":"add","path":"/metadata/finalizers","value":["example.com/hold"]}]"#;
    at.words(&["patch", "svc", "web", "--type=json", "-p", hold], &["service/web patched"]).await;
    at.run("delete svc web --wait=false", &["service \"web\" deleted from default namespace"]).await;
    at.run("get svc web -o jsonpath={.metadata.finalizers}", &["[\"example.com/hold\"]"]).await;
    at.run(
        "wait svc/web --for=jsonpath={.metadata.deletionTimestamp} --timeout=3m",
        &["service/web condition met"],
    )
    .await;
    let more = r#"{"metadata":{"finalizers":["example.com/hold","example.com/more"]}}"#;
    at.words_refused(
        &["patch", "svc", "web", "--type=merge", "-p", more],
        &["The Service \"web\" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"example.com/more\"}"],
    )
    .await;
    let release = ["patch", "svc", "web", "--type=merge", "-p", r#"{"metadata":{"finalizers":null}}"#];
    // A deletion that waits says so first, and ends when the object is gone.
    let mut waiting = at.kubectl().follow(&["delete", "svc", "web"]).unwrap();
    let said = waiting.line().await.unwrap();
    assert_eq!(said.as_deref(), Some("service \"web\" deleted from default namespace"));
    at.words(&release, &["service/web patched"]).await;
    assert_eq!(waiting.line().await.unwrap(), None);
    at.run("wait svc/web --for=delete --timeout=3m", &[]).await;
    at.refused("get svc web", &["Error from server (NotFound): services \"web\" not found"]).await;
    at.run("delete svc web --ignore-not-found", &[]).await;
    at.run("delete event web.1", &["event \"web.1\" deleted from default namespace"]).await;
}

async fn watching(at: &Terminal<'_>) {
    let mut watch = at.kubectl().follow(&["get", "nodes", "-w", "--output-watch-events"]).unwrap();
    let mut next = async |expected| at.next(&watch.line().await.unwrap().expect("the watch ended"), expected);
    next("EVENT NAME STATUS ROLES AGE VERSION").await;
    next("ADDED n1 Ready control-plane (age) v1.37.1").await;
    at.feed("create -f -", &NODE.replace("n1", "n2"), &["node/n2 created"]).await;
    next("ADDED n2 Unknown control-plane (age)").await;
    at.run("cordon n2", &["node/n2 cordoned"]).await;
    next("MODIFIED n2 Unknown,SchedulingDisabled control-plane (age)").await;
    at.run("delete node n2", &["node \"n2\" deleted"]).await;
    next("DELETED n2 Unknown,SchedulingDisabled control-plane (age)").await;
    at.words(&["patch", "node", "n1", "--subresource=status", "-p", NOT_READY], &["node/n1 patched"]).await;
    next("MODIFIED n1 NotReady control-plane (age) v1.37.1").await;
    at.run("wait node/n1 --for=condition=Ready=False --timeout=3m", &["node/n1 condition met"]).await;
    // Time enough to read the node on a slow disk: without it the refusal is another one.
    at.refused(
        "wait node/n1 --for=condition=Ready --timeout=5s",
        &["error: timed out waiting for the condition on nodes/n1"],
    )
    .await;
    at.run("delete node n1", &["node \"n1\" deleted"]).await;
}

async fn deployments(at: &Terminal<'_>) {
    at.run("create deployment web --image=nginx:1 --replicas=2", &["deployment.apps/web created"]).await;
    at.run("get deploy", &["NAME READY UP-TO-DATE AVAILABLE AGE", "web 0/2 0 0 (age)"]).await;
    let wide = "NAME READY UP-TO-DATE AVAILABLE AGE CONTAINERS IMAGES SELECTOR";
    at.run("get deploy web -o wide", &[wide, "web 0/2 0 0 (age) nginx nginx:1 app=web"]).await;
    at.run("rollout restart deploy web", &["deployment.apps/web restarted"]).await;
    at.run("set image deploy web nginx=nginx:2", &["deployment.apps/web image updated"]).await;
    at.run("get deploy web -o jsonpath={.metadata.generation}", &["3"]).await;
    at.run("delete deploy web", &["deployment.apps \"web\" deleted from default namespace"]).await;
}

async fn custom_kinds(at: &Terminal<'_>) {
    let name = "customresourcedefinition.apiextensions.k8s.io/pools.example.com";
    at.feed("apply -f -", DEFINITION, &[&format!("{name} created")]).await;
    at.run("wait --for=condition=Established crd/pools.example.com", &[&format!("{name} condition met")])
        .await;
    eventually(Duration::from_mins(1), "pools are served", async || {
        let output = at.kubectl().run_with_input(&["get", "pools"], "").await.unwrap();
        if output.ok { Ok(()) } else { Err(output.stderr) }
    })
    .await
    .unwrap();
    at.feed("apply -f -", POOL, &["pool.example.com/blue created"]).await;
    at.feed("apply -f -", POOL, &["pool.example.com/blue unchanged"]).await;
    at.feed("apply -f -", &POOL.replace("size: 1", "size: 2"), &["pool.example.com/blue configured"]).await;
    at.run("get pl", &["NAME AGE", "blue (age)"]).await;
    let why = "The Pool \"blue\" is invalid: spec.size: Required value";
    at.words_refused(&["patch", "pool", "blue", "--type=merge", "-p", r#"{"spec":{"size":null}}"#], &[why])
        .await;
    at.run("delete pool blue", &["pool.example.com \"blue\" deleted from default namespace"]).await;
    at.run(
        "delete crd pools.example.com",
        &["customresourcedefinition.apiextensions.k8s.io \"pools.example.com\" deleted"],
    )
    .await;
}

async fn around(at: &Terminal<'_>) {
    let known = [
        "NAME SHORTNAMES APIVERSION NAMESPACED KIND",
        "configmaps cm v1 true ConfigMap",
        "endpoints ep v1 true Endpoints",
        "events ev v1 true Event",
        "namespaces ns v1 false Namespace",
        "nodes no v1 false Node",
        "pods po v1 true Pod",
        "secrets v1 true Secret",
        "serviceaccounts sa v1 true ServiceAccount",
        "services svc v1 true Service",
        "customresourcedefinitions crd,crds apiextensions.k8s.io/v1 false CustomResourceDefinition",
        "deployments deploy apps/v1 true Deployment",
        "tokenreviews authentication.k8s.io/v1 false TokenReview",
        "selfsubjectaccessreviews authorization.k8s.io/v1 false SelfSubjectAccessReview",
        "subjectaccessreviews authorization.k8s.io/v1 false SubjectAccessReview",
        "leases coordination.k8s.io/v1 true Lease",
        "endpointslices discovery.k8s.io/v1 true EndpointSlice",
        "events ev events.k8s.io/v1 true Event",
    ];
    // A real server has more.
    let mut listed = at.screen("api-resources").await;
    listed.retain(|line| known.contains(&line.as_str()));
    assert_eq!(listed, known);
    at.run("auth can-i create services", &["yes"]).await;
    at.run("auth can-i delete nodes", &["yes", "Warning: resource 'nodes' is not namespace scoped"]).await;
    at.run("auth can-i * *", &["yes"]).await;
    at.run("version", &["Client Version: v1.37.1", "Kustomize Version: v5.8.1", "Server Version: v1.37.1"])
        .await;
    at.refused("get ndoes", &["error: the server doesn't have a resource type \"ndoes\""]).await;
}
