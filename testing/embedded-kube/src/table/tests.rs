use super::*;

fn cells(plural: &str, object: &Value) -> Value {
    let all = super::super::resource::builtin();
    let resource = all.iter().find(|resource| resource.plural == plural).unwrap();
    let now = time::parse("2024-01-01T01:00:00Z").unwrap();
    let row = row(resource, object, now)["cells"].clone();
    assert_eq!(row.as_array().unwrap().len(), columns(resource).as_array().unwrap().len(), "{plural}");
    row
}

#[test]
fn rows_read_as_people_know_them() {
    let meta = |name: &str| json!({"name": name, "creationTimestamp": "2024-01-01T00:00:00Z"});
    let table = [
        (
            "nodes",
            json!({"metadata": meta("n"), "spec": {"unschedulable": true}, "status": {}}),
            json!([
                "n",
                "Unknown,SchedulingDisabled",
                "<none>",
                "60m",
                "",
                "<none>",
                "<none>",
                "<unknown>",
                "<unknown>",
                "<unknown>"
            ]),
        ),
        (
            "services",
            json!({"metadata": meta("s"), "spec": {"type": "LoadBalancer", "clusterIP": "10.96.0.1", "ports": [{"port": 80, "nodePort": 30001, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]}}),
            json!(["s", "LoadBalancer", "10.96.0.1", "<pending>", "80:30001/TCP,53/UDP", "60m", "<none>"]),
        ),
        (
            "services",
            json!({"metadata": meta("s"), "spec": {"type": "LoadBalancer", "externalIPs": ["9.9.9.9"], "selector": {"a": "b"}}, "status": {"loadBalancer": {"ingress": [{"hostname": "z"}, {"ip": "1.1.1.1"}]}}}),
            json!(["s", "LoadBalancer", "<none>", "1.1.1.1,z,9.9.9.9", "<none>", "60m", "a=b"]),
        ),
        (
            "pods",
            json!({"metadata": meta("p"), "spec": {"containers": [{}, {}], "nodeName": "n"}, "status": {"phase": "Running", "podIP": "10.0.0.1", "containerStatuses": [{"ready": true, "restartCount": 2}, {"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}}),
            json!(["p", "1/2", "CrashLoopBackOff", "2", "60m", "10.0.0.1", "n", "<none>", "<none>"]),
        ),
        (
            "events",
            json!({"metadata": meta("e"), "involvedObject": {"kind": "Node", "name": "n"}, "type": "Normal", "reason": "R", "message": " m ", "eventTime": "2024-01-01T00:59:30Z", "reportingComponent": "c", "reportingInstance": "i"}),
            json!(["30s", "Normal", "R", "node/n", "", "c, i", "m", "30s", 1, "e"]),
        ),
        (
            "endpoints",
            json!({"metadata": meta("e"), "subsets": [{"addresses": [{"ip": "1.1.1.1"}, {"ip": "fd00::1"}], "ports": [{"port": 1}, {"port": 2}]}]}),
            json!(["e", "1.1.1.1:1,1.1.1.1:2,[fd00::1]:1 + 1 more...", "60m"]),
        ),
        (
            "endpointslices",
            json!({"metadata": meta("e"), "addressType": "IPv4"}),
            json!(["e", "IPv4", "<unset>", "<unset>", "60m"]),
        ),
    ];
    for (plural, object, want) in table {
        assert_eq!(cells(plural, &object), want, "{plural}");
    }
}
