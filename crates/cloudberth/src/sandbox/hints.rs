//! What to try in a sandbox. Tests run every command.

use cloudberth::world::{PROVIDERS, mistake};

/// Commands for another terminal, in this order.
pub(super) fn commands(provider: &str) -> Vec<String> {
    let port = if provider == PROVIDERS[0] { 8080 } else { 80 };
    let (key, value) = mistake(provider);
    let mut all = vec![
        "kubectl get nodes -o wide".to_owned(),
        format!("kubectl create service loadbalancer web --tcp={port}:80"),
        "kubectl wait service web --for=jsonpath='{.status.loadBalancer.ingress}' --timeout=60s".to_owned(),
        "kubectl get service web".to_owned(),
    ];
    if provider == PROVIDERS[0] {
        let address = "$(kubectl get service web -o jsonpath='{.status.loadBalancer.ingress[0].ip}')";
        all.push(format!("curl http://{address}:{port}/"));
    }
    all.extend([
        format!("kubectl annotate service web {key}={value}"),
        "kubectl describe service web".to_owned(),
        "kubectl events".to_owned(),
        "kubectl delete service web".to_owned(),
    ]);
    all
}

/// Words that the sandbox itself understands, and what they do.
pub(super) const WORDS: &[(&str, &str)] = &[
    ("add", "an instance boots, and its kubelet registers a node"),
    ("stop NODE", "its instance is switched off"),
    ("start NODE", "its instance is switched on"),
    ("destroy NODE", "its instance is destroyed"),
    ("break errors|token|slow|lying", "the cloud's API fails, refuses the token, is slow, or lists nothing"),
    ("mend", "the cloud's API is well again"),
    ("kill", "the leading replica of the manager dies"),
    ("traffic N", "N requests per second through each load balancer"),
];
