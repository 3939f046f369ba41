//! A plan for people to read.

use std::fmt::Write;

use super::{Entry, Plan};

impl Plan {
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let sections = [("Services", &self.services), ("Nodes", &self.nodes), ("Routes", &self.routes)];
        for (title, entries) in sections {
            section(&mut text, title, entries);
        }
        if !self.unknown.is_empty() {
            text.push_str("Could not be told\n");
            for unknown in &self.unknown {
                let _ = writeln!(text, "  {}{}: {}", unknown.what, at(unknown.cloud.as_ref()), unknown.why);
            }
            text.push('\n');
        }
        text + &self.summary()
    }

    fn summary(&self) -> String {
        let count = |entries: &[Entry]| {
            entries.iter().filter(|entry| !entry.steps.is_empty() || entry.waits_for.is_some()).count()
        };
        let [services, nodes, routes] = [&self.services, &self.nodes, &self.routes].map(|list| count(list));
        let known = match services + nodes + routes {
            0 if self.unknown.is_empty() => "Nothing to do.\n".to_owned(),
            0 => String::new(),
            _ => format!(
                "To change: {services} Services, {nodes} nodes, the routes of {routes} clouds. Nothing was written.\n"
            ),
        };
        match self.unknown.len() {
            0 => known,
            unknown => format!("{known}Could not be told: {unknown}. What is missing may still change.\n"),
        }
    }
}

fn section(text: &mut String, title: &str, entries: &[Entry]) {
    if entries.is_empty() {
        return;
    }
    let _ = writeln!(text, "{title}");
    for entry in entries {
        let _ = writeln!(text, "  {}{}", entry.name, at(entry.cloud.as_ref()));
        for step in &entry.steps {
            let _ = writeln!(text, "    - {} [impact: {}]", step.label, step.impact);
        }
        if let Some(what) = &entry.waits_for {
            let _ = writeln!(text, "    … waits: {what}");
        }
        for remark in &entry.remarks {
            let _ = writeln!(text, "    ! {remark}");
        }
    }
    text.push('\n');
}

fn at(cloud: Option<&String>) -> String {
    cloud.map(|cloud| format!(" ({cloud})")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::{Step, Unknown};
    use super::*;

    fn step(label: &str, impact: &str) -> Step {
        Step { label: label.into(), impact: impact.into() }
    }

    #[test]
    fn people_see_every_part() {
        let web = Entry {
            name: "default/web".into(),
            cloud: Some("alpha".into()),
            steps: vec![step("create x", "none"), step("replace pool y", "considerable")],
            waits_for: Some("the cloud".into()),
            remarks: vec!["spec.z: no".into()],
        };
        let unknown = Unknown { what: "node n".into(), cloud: Some("beta".into()), why: "503".into() };
        let plan = Plan { services: vec![web], unknown: vec![unknown], ..Plan::default() };
        let want = "\
Services
  default/web (alpha)
    - create x [impact: none]
    - replace pool y [impact: considerable]
    … waits: the cloud
    ! spec.z: no

Could not be told
  node n (beta): 503

To change: 1 Services, 0 nodes, the routes of 0 clouds. Nothing was written.
Could not be told: 1. What is missing may still change.
";
        assert_eq!(plan.to_text(), want);
        assert_eq!(Plan::default().to_text(), "Nothing to do.\n");
    }

    #[test]
    fn the_exit_code_says_what_a_script_needs() {
        let entry = |steps, waits: Option<&str>, remarks: &[&str]| Entry {
            steps,
            waits_for: waits.map(str::to_owned),
            remarks: remarks.iter().map(|&remark| remark.to_owned()).collect(),
            ..Entry::default()
        };
        let unknown = || vec![Unknown { what: "x".into(), cloud: None, why: "y".into() }];
        let table = [
            ("nothing", None, vec![], 0),
            ("only remarks", Some(entry(vec![], None, &["refused"])), vec![], 0),
            ("a step", Some(entry(vec![step("a", "none")], None, &[])), vec![], 2),
            ("a wait", Some(entry(vec![], Some("b"), &[])), vec![], 2),
            ("unknown", None, unknown(), 1),
            ("a step, and unknown", Some(entry(vec![step("a", "none")], None, &[])), unknown(), 1),
        ];
        for (case, entry, unknown, want) in table {
            let services: Vec<_> = entry.into_iter().collect();
            let as_services =
                Plan { services: services.clone(), unknown: unknown.clone(), ..Plan::default() };
            let as_nodes = Plan { nodes: services.clone(), unknown: unknown.clone(), ..Plan::default() };
            let as_routes = Plan { routes: services, unknown, ..Plan::default() };
            for plan in [as_services, as_nodes, as_routes] {
                assert_eq!(plan.exit_code(), want, "{case}");
            }
        }
    }
}
