//! The system calls that no command needs and that an escape does: a seccomp filter. Knows no paths.
//!
//! What is denied answers "not permitted", so that programs go on without it. `clone3` hides its flags behind a
//! pointer that no filter can follow: it is said not to exist, and C libraries fall back to `clone`.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, sock_filter,
};

/// Which sockets a command may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sockets {
    /// Where a network namespace decides what they reach.
    Ordinary,
    /// Where nothing else holds them: not even those of this machine, behind which agents and daemons listen.
    None,
}

/// Looks into or steers other processes, changes what is mounted, the kernel or its keys, or does system calls
/// past the filter.
const DENIED: &[c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_vhangup,
];

/// Of any kind; each one opens a kernel of its own to attack.
const NAMESPACES: &[libc::c_int] = &[
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Types into a terminal in place of its user.
const TERMINAL_REQUESTS: &[u64] = &[libc::TIOCSTI, libc::TIOCLINUX];

/// Families that ordinary programs use; the rest is seldom used and often broken.
const FAMILIES: &[libc::c_int] = &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// The filter for this machine, or why there is none.
pub(super) fn program(sockets: Sockets) -> Result<BpfProgram, seccompiler::BackendError> {
    let target = TargetArch::try_from(std::env::consts::ARCH)?;
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = DENIED.iter().map(|call| (*call, Vec::new())).collect();
    let namespaces = || {
        let has = |flag: &libc::c_int| masked(0, u64::from(flag.cast_unsigned()));
        NAMESPACES.iter().map(|flag| SeccompRule::new(vec![has(flag)?])).collect::<Result<Vec<_>, _>>()
    };
    rules.insert(libc::SYS_clone, namespaces()?);
    rules.insert(libc::SYS_unshare, namespaces()?);
    let requests = TERMINAL_REQUESTS.iter().map(|request| SeccompRule::new(vec![is(1, *request)?]));
    rules.insert(libc::SYS_ioctl, requests.collect::<Result<_, _>>()?);
    rules.insert(libc::SYS_socket, socket_rules(sockets)?);
    let denied = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, denied, target)?;
    let mut program = absent_calls();
    program.extend(BpfProgram::try_from(filter)?);
    Ok(program)
}

fn socket_rules(sockets: Sockets) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    match sockets {
        // No rule at all matches always.
        Sockets::None => Ok(Vec::new()),
        Sockets::Ordinary => {
            let strange = FAMILIES.iter().map(|family| is_not(0, u64::from(family.cast_unsigned())));
            let netlink = u64::from(libc::AF_NETLINK.cast_unsigned());
            let beyond_routes =
                vec![is(0, netlink)?, is_not(2, u64::from(libc::NETLINK_ROUTE.cast_unsigned()))?];
            Ok(vec![SeccompRule::new(strange.collect::<Result<_, _>>()?)?, SeccompRule::new(beyond_routes)?])
        }
    }
}

fn is(argument: u8, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn is_not(argument: u8, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
}

fn masked(argument: u8, bits: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(bits), bits)
}

/// Calls that are answered as if the kernel did not know them: `clone3`, and everything of the 32-bit pointer
/// variant of x86-64, whose numbers would slip past the rules.
fn absent_calls() -> BpfProgram {
    const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
    const JUMP_EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
    const JUMP_AT_LEAST: u16 = 0x35; // BPF_JMP | BPF_JGE | BPF_K
    const RETURN: u16 = 0x06; // BPF_RET | BPF_K
    const VARIANT_BIT: u32 = 0x4000_0000;
    let absent = u32::from(SeccompAction::Errno(libc::ENOSYS.cast_unsigned()));
    let clone3 = u32::try_from(libc::SYS_clone3).unwrap_or(u32::MAX);
    vec![
        // The number of the call is the first field of what a filter sees.
        sock_filter { code: LOAD, jt: 0, jf: 0, k: 0 },
        sock_filter { code: JUMP_EQUAL, jt: 1, jf: 0, k: clone3 },
        sock_filter { code: JUMP_AT_LEAST, jt: 0, jf: 1, k: VARIANT_BIT },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: absent },
    ]
}
