//! Which room may know which: read from `cargo metadata`, held against the table of ARCHITECTURE.md.

use serde_json::Value;

use super::Finding;

/// Room → rooms it may depend on. A room that is not here may depend on nothing of ours.
const ALLOWED: [(&str, &[&str]); 21] = [
    ("attache-core", &[]),
    ("attache-rpc", &[]),
    ("attache-models", &["attache-core"]),
    // Publishable alone.
    ("attache-shell", &[]),
    ("attache-sandbox", &["attache-core"]),
    ("attache-tools", &["attache-core", "attache-sandbox", "attache-shell"]),
    ("attache-mcp", &["attache-core", "attache-rpc", "attache-sandbox"]),
    // Of no other room: what listens for one protocol listens for the next.
    ("attache-http", &[]),
    ("attache-mcp-server", &["attache-core", "attache-rpc", "attache-http"]),
    ("attache-store", &["attache-core"]),
    ("attache-telemetry", &["attache-core"]),
    ("attache-acp", &["attache-core", "attache-rpc"]),
    // Agents that live elsewhere; those of ACP through its client.
    ("attache-foreign", &["attache-core", "attache-rpc", "attache-acp-client", "attache-sandbox"]),
    // Clients of agents, ours among them: they know the protocol and nothing behind it.
    ("attache-acp-client", &["attache-rpc"]),
    ("attache-chat", &["attache-rpc", "attache-acp-client"]),
    ("attache-serve", &["attache-core", "attache-rpc", "attache-acp", "attache-http"]),
    ("attache-testkit", &["attache-core", "attache-rpc"]),
    (
        "attache",
        &[
            "attache-core",
            "attache-rpc",
            "attache-acp",
            "attache-acp-client",
            "attache-chat",
            "attache-serve",
            "attache-foreign",
            "attache-http",
            "attache-mcp",
            "attache-mcp-server",
            "attache-models",
            "attache-sandbox",
            "attache-tools",
            "attache-store",
            "attache-telemetry",
        ],
    ),
    // Outside of the house: one measures its rooms, the other knows only where they are.
    (
        "attache-bench",
        &[
            "attache-core",
            "attache-acp",
            "attache-mcp",
            "attache-models",
            "attache-sandbox",
            "attache-shell",
            "attache-tools",
        ],
    ),
    // What others who build on the rooms would write.
    ("attache-embed", &["attache-core", "attache-models", "attache-store"]),
    ("xtask", &[]),
];

pub(crate) fn check(metadata: &Value) -> Vec<Finding> {
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let ours: Vec<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    let mut findings = Vec::new();
    for package in packages {
        let Some(name) = package["name"].as_str() else { continue };
        let Some((_, allowed)) = ALLOWED.iter().find(|(room, _)| *room == name) else {
            findings
                .push(Finding::new(name, "is not in the table of rooms (xtask/src/tidy/dependencies.rs)"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let Some(on) = dependency["name"].as_str().filter(|on| ours.contains(on)) else { continue };
            // Tests compose rooms as the command line does; what ships is what counts.
            let only_for_tests = dependency["kind"] == "dev";
            if !only_for_tests && !allowed.contains(&on) {
                findings.push(Finding::new(name, format!("must not depend on {on}")));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn metadata(edges: &[(&str, &str, Option<&str>)]) -> Value {
        let names = [
            "attache-core",
            "attache-rpc",
            "attache-acp",
            "attache-store",
            "attache-testkit",
            "attache-bench",
        ];
        let packages: Vec<Value> = names
            .iter()
            .map(|name| {
                let dependencies: Vec<Value> = edges
                    .iter()
                    .filter(|(from, _, _)| from == name)
                    .map(|(_, on, kind)| json!({"name": on, "kind": kind}))
                    .collect();
                json!({"name": name, "dependencies": dependencies})
            })
            .collect();
        json!({ "packages": packages })
    }

    #[test]
    fn the_directions_of_the_house_pass() {
        let edges = [
            ("attache-acp", "attache-core", None),
            ("attache-acp", "serde", None),
            ("attache-store", "attache-testkit", Some("dev")),
            ("attache-acp", "attache-store", Some("dev")),
            ("attache-bench", "attache-core", None),
        ];
        assert_eq!(check(&metadata(&edges)), []);
    }

    #[test]
    fn a_room_that_knows_too_much_is_found() {
        for edge in [
            ("attache-core", "attache-rpc", None),
            ("attache-acp", "attache-store", None),
            ("attache-store", "attache-testkit", None),
        ] {
            let found = check(&metadata(&[edge]));
            assert_eq!(found, [Finding::new(edge.0, format!("must not depend on {}", edge.1))]);
        }
    }

    #[test]
    fn a_new_room_needs_a_line_in_the_table() {
        let found = check(&json!({"packages": [{"name": "attache-attic", "dependencies": []}]}));
        assert_eq!(found.len(), 1);
    }
}
