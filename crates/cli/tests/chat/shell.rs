//! The same exit codes where they are used: in a script of the shell.

use super::*;

const SCRIPT: &str = r#"
on "say hi"
  text "Hi there."
on "break"
  error permanent "the model is on fire"
on "write"
  call write {"path":"made.txt","content":"x\n"}
  ---
  text "Tried it."
on "twice"
  call glob {"pattern":"*.rs"}
  ---
  text "Done."
on "for ever"
  stream 100000 "x " every 20ms
"#;

/// What a pipeline would do with each of them.
const SHELL: &str = r#"
set -u
ask() { "$ATTACHE" chat -p "$@" < /dev/null > said 2> told; echo "$?"; }
said=$("$ATTACHE" chat -p "say hi" < /dev/null) && echo "0: $said"
ask "break"
ask "say hi" --output yaml
ask "write"
ask "twice" --max-steps 1
timeout --preserve-status -s INT 3 "$ATTACHE" chat -p "for ever" < /dev/null > cut 2> told; echo "$?"
test -s cut && echo "what was said is there"
if git diff 2> told | "$ATTACHE" chat -p "say hi" | grep -q "Hi there"; then echo "piped"; fi
case $("$ATTACHE" chat -p "write" --output json < /dev/null 2> told) in
  *'"denied":[{'*) echo "denied is listed" ;;
esac
"#;

#[tokio::test]
async fn a_shell_script_branches_on_every_exit_code() {
    let home = home(SCRIPT);
    let output = home
        .program("sh")
        .args(["-c", SHELL])
        .env("ATTACHE", home.binary())
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let expected =
        ["0: Hi there.", "1", "2", "3", "4", "130", "what was said is there", "piped", "denied is listed"];
    assert_eq!(said.lines().collect::<Vec<_>>(), expected, "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(home.orphans(), []);
}
