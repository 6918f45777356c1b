//! The profile for `sandbox-exec` of macOS, as text. Not verified on that system: nothing here runs it.

use std::path::Path;

use attache_core::ports::tool::NetworkGrant;
use attache_core::scope::Guarded;

/// Denies writes but below `writable`, reads of `hidden`, changes of protected names anywhere, and the network
/// unless it is granted. Unverified: written from the published descriptions of the language.
pub fn profile(writable: &[&Path], hidden: &[&Path], network: NetworkGrant) -> String {
    let mut text = String::from("(version 1)\n(allow default)\n(deny file-write*)\n");
    let mut say = |line: &str| {
        text.push_str(line);
        text.push('\n');
    };
    for path in writable {
        say(&format!("(allow file-write* (subpath {}))", quoted(&path.to_string_lossy())));
    }
    say("(allow file-write* (literal \"/dev/null\") (literal \"/dev/tty\"))");
    for name in Guarded::protected_names() {
        say(&format!("(deny file-write* (regex {}))", quoted(&format!("/{}(/|$)", escaped(name)))));
    }
    // Against moving a repository away and making another in its place.
    say("(deny file-write-unlink (regex \"/\\\\.git$\"))");
    for path in hidden {
        say(&format!("(deny file-read* file-write* (subpath {}))", quoted(&path.to_string_lossy())));
    }
    if network == NetworkGrant::Withheld {
        say("(deny network*)");
    }
    say("(deny process-info* (target others))");
    say("(deny signal (target others))");
    text
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn escaped(name: &str) -> String {
    name.replace('.', "\\.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_lets_write_the_roots_and_nothing_protected() {
        let profile =
            profile(&[Path::new("/w/a \"b\"")], &[Path::new("/Users/ada/.ssh")], NetworkGrant::Withheld);
        let lines: Vec<&str> = profile.lines().collect();
        assert_eq!(lines[..3], ["(version 1)", "(allow default)", "(deny file-write*)"]);
        for line in [
            r#"(allow file-write* (subpath "/w/a \"b\""))"#,
            r#"(deny file-write* (regex "/\\.git/hooks(/|$)"))"#,
            r#"(deny file-read* file-write* (subpath "/Users/ada/.ssh"))"#,
            "(deny network*)",
        ] {
            assert!(lines.contains(&line), "{line}\n{profile}");
        }
        // The last word counts: what is denied comes behind what is allowed.
        let at = |needle: &str| lines.iter().position(|line| line.contains(needle)).unwrap();
        assert!(at("/w/a") < at("hooks") && at("hooks") < at(".ssh"));
        assert!(!super::profile(&[], &[], NetworkGrant::Granted).contains("network"));
    }
}
