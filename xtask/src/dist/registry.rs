//! The entry for the registry of ACP agents, from which editors install.

use serde_json::{Value, json};

use super::Release;

/// Target → platform, as the registry names it.
const PLATFORMS: [(&str, &str); 4] = [
    ("x86_64-unknown-linux-gnu", "linux-x86_64"),
    ("aarch64-unknown-linux-gnu", "linux-aarch64"),
    ("x86_64-apple-darwin", "darwin-x86_64"),
    ("aarch64-apple-darwin", "darwin-aarch64"),
];

/// By npm; as an archive, too, where the workspace says where its releases are.
pub(super) fn entry(release: &Release, archive: &str, sum: &str) -> Value {
    let Release { version, target, .. } = release;
    let mut entry = json!({
        "id": "attache",
        "name": "attache",
        "version": version,
        "description": release.description,
        "authors": ["The attache authors"],
        "license": release.license,
        "distribution": { "npx": { "package": format!("attache@{version}"), "args": ["acp"] } },
    });
    let platform = PLATFORMS.iter().find(|(known, _)| known == target);
    if let (Some(repository), Some((_, platform))) = (&release.repository, platform) {
        entry["repository"] = json!(repository);
        entry["distribution"]["binary"][platform] = json!({
            "archive": format!("{repository}/releases/download/v{version}/{archive}"),
            "sha256": sum,
            "cmd": format!("./attache-{version}-{target}/attache"),
            "args": ["acp"],
        });
    }
    entry
}
