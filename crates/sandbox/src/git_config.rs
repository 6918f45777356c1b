//! Keys of git's configuration that name no program and no file. Any other key may.

/// Sections whose keys all name neither a program nor a file.
const HARMLESS_SECTIONS: [&str; 4] = ["color", "advice", "author", "committer"];

/// Keys that name neither a program nor a file, of sections with others that do: `gc.recentObjectsHook`,
/// `init.templateDir`, `rebase.instructionFormat` (it may write `exec` lines), `commit.template`,
/// `branch.*.mergeOptions`.
const HARMLESS_KEYS: [(&str, &[&str]); 13] = [
    (
        "branch",
        &[
            "remote",
            "merge",
            "pushremote",
            "rebase",
            "description",
            "autosetupmerge",
            "autosetuprebase",
            "sort",
            "vscode-merge-base",
            "gh-merge-base",
            "github-pr-owner-number",
        ],
    ),
    ("user", &["name", "email", "useconfigonly"]),
    ("init", &["defaultbranch", "defaultobjectformat", "defaultrefformat"]),
    ("pull", &["rebase", "ff", "autostash"]),
    ("push", &["default", "followtags", "autosetupremote", "useforceifincludes", "negotiate"]),
    (
        "fetch",
        &[
            "prune",
            "prunetags",
            "all",
            "output",
            "parallel",
            "writecommitgraph",
            "fsckobjects",
            "unpacklimit",
        ],
    ),
    (
        "gc",
        &[
            "auto",
            "autodetach",
            "autopacklimit",
            "packrefs",
            "pruneexpire",
            "reflogexpire",
            "reflogexpireunreachable",
            "aggressivedepth",
            "aggressivewindow",
            "bigpackthreshold",
            "cruftpacks",
            "writecommitgraph",
            "logexpiry",
            "worktreepruneexpire",
        ],
    ),
    (
        "rebase",
        &["autosquash", "autostash", "stat", "updaterefs", "backend", "missingcommitscheck", "forkpoint"],
    ),
    ("commit", &["gpgsign", "status", "verbose", "cleanup"]),
    (
        "core",
        &[
            "repositoryformatversion",
            "filemode",
            "bare",
            "logallrefupdates",
            "ignorecase",
            "precomposeunicode",
            "symlinks",
            "autocrlf",
            "eol",
            "safecrlf",
            "quotepath",
        ],
    ),
    (
        "status",
        &["short", "branch", "showuntrackedfiles", "relativepaths", "aheadbehind", "renames", "showstash"],
    ),
    ("remote", &["url", "fetch", "pushurl", "push", "mirror", "prune", "tagopt"]),
    (
        "extensions",
        &["objectformat", "compatobjectformat", "refstorage", "worktreeconfig", "relativeworktrees"],
    ),
];

/// Whether a key of a section of git's configuration has nothing to do with programs.
pub fn names_no_program(section: &str, key: &str) -> bool {
    HARMLESS_SECTIONS.contains(&section)
        || HARMLESS_KEYS.iter().any(|(known, keys)| *known == section && keys.contains(&key))
}
