//! A seccomp filter against the system calls that no command needs but an escape does. Knows no paths.
//!
//! A denied call fails with "not permitted", so that programs continue without it. `clone3` and `openat2` pass
//! their request behind a pointer that no filter can follow: they fail as if they did not exist, and programs
//! fall back to `clone` and `openat`.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, sock_filter,
};

/// Which sockets a command may create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Sockets {
    /// Where a network namespace decides what they reach.
    Ordinary,
    /// Nothing else restricts sockets, so allow none: not even those of this machine, where agents and daemons
    /// listen.
    None,
}

/// Which foreign processes a command could name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Neighbours {
    /// Namespaces separate them.
    Unseen,
    /// All processes of the machine: the kernel lets processes of one user slow, limit and talk to each other.
    Visible,
}

/// Whether a command may set the set-group-ID bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum GroupBit {
    Refused,
    /// A team's directories have the bit, so every change of their mode sets it again. No filter can tell a
    /// directory from a file by its name.
    Needed,
}

/// What one filter must enforce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FilterRules {
    pub(super) sockets: Sockets,
    pub(super) neighbours: Neighbours,
    pub(super) group_bit: GroupBit,
}

/// Opens a tree of mounts and changes their attributes at once, since Linux 6.15. Its number is the same on all
/// machines.
const OPEN_TREE_ATTR: c_long = 467;

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
    OPEN_TREE_ATTR,
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

/// Objects that all processes of a user share by number or name: memory, queues and semaphores.
const SHARED_OBJECTS: &[c_long] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// Calls that change the process in the first argument; zero means the caller.
const STEERED_BY_PROCESS: &[c_long] = &[
    libc::SYS_prlimit64,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setaffinity,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
];

/// Calls that change the process, group or user in the second argument; the first says which kind. Each with
/// the value of the first that means all processes of a user.
const STEERED_BY_KIND: &[(c_long, u64)] = &[(libc::SYS_setpriority, 2), (libc::SYS_ioprio_set, 3)];

const SET_USER_ID: u64 = 0o4000;
const SET_GROUP_ID: u64 = 0o2000;

/// Calls that change the mode of an existing file, with the index of the mode argument.
const CHANGES_MODE: &[(c_long, u8)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (libc::SYS_fchmodat2, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
];

/// Calls that make a file, with the index of the mode argument. The kernel itself removes both bits from new
/// directories.
const MAKES_FILE: &[(c_long, u8)] = &[
    (libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
];

/// Calls that make a file depending on the flags (the first index), with the mode (the second). Without such
/// flags they have no mode.
const MAY_MAKE_FILE: &[(c_long, u8, u8)] = &[
    (libc::SYS_openat, 2, 3),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1, 2),
];

/// All kinds; each one offers more of the kernel to attack.
const NAMESPACES: &[libc::c_int] = &[
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Requests that type into a terminal in place of its user.
const TERMINAL_REQUESTS: &[u64] = &[libc::TIOCSTI, libc::TIOCLINUX];

/// A lease makes every other open of a file wait or fail: with one on a repository's configuration a command
/// would keep us from reading what git reads.
const LEASE: libc::c_int = libc::F_SETLEASE;

/// Families that ordinary programs use; the others are rare and often vulnerable.
const FAMILIES: &[libc::c_int] = &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// The filter for this machine, or why there is none.
pub(super) fn program(wanted: FilterRules) -> Result<BpfProgram, seccompiler::BackendError> {
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
    rules.insert(libc::SYS_fcntl, vec![SeccompRule::new(vec![is(1, u64::from(LEASE.cast_unsigned()))?])?]);
    rules.insert(libc::SYS_socket, socket_rules(wanted.sockets)?);
    rules.extend(mode_rules(wanted.group_bit)?);
    match wanted.neighbours {
        Neighbours::Unseen => {}
        Neighbours::Visible => rules.extend(neighbour_rules()?),
    }
    let denied = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, denied, target)?;
    let mut program = absent_calls();
    program.extend(BpfProgram::try_from(filter)?);
    Ok(program)
}

type CallRules = Vec<(i64, Vec<SeccompRule>)>;

/// Forbids files that run as their owner or group.
fn mode_rules(group_bit: GroupBit) -> Result<CallRules, seccompiler::BackendError> {
    let both = [SET_USER_ID, SET_GROUP_ID];
    let changing: &[u64] = match group_bit {
        GroupBit::Refused => &both,
        GroupBit::Needed => &[SET_USER_ID],
    };
    let with_bits = |(call, mode): &(c_long, u8), bits: &[u64]| {
        let rules = bits.iter().map(|bit| SeccompRule::new(vec![masked(*mode, *bit)?]));
        Ok((*call, rules.collect::<Result<Vec<_>, _>>()?))
    };
    let changes = CHANGES_MODE.iter().map(|call| with_bits(call, changing));
    let makes = MAKES_FILE.iter().map(|call| with_bits(call, &both));
    let may_make = MAY_MAKE_FILE.iter().map(|(call, flags, mode)| {
        // The bit of `O_TMPFILE` that is not `O_DIRECTORY`, which other calls set as well.
        let nameless = libc::O_TMPFILE & !libc::O_DIRECTORY;
        let making = [libc::O_CREAT, nameless].map(|flag| u64::from(flag.cast_unsigned()));
        let pairs = making.iter().flat_map(|flag| both.iter().map(move |bit| (*flag, *bit)));
        let rules =
            pairs.map(|(flag, bit)| SeccompRule::new(vec![masked(*flags, flag)?, masked(*mode, bit)?]));
        Ok((*call, rules.collect::<Result<Vec<_>, _>>()?))
    });
    changes.chain(makes).chain(may_make).collect()
}

/// Keeps a command from changing foreign processes and from sharing objects with them. This also refuses a
/// thread that names itself by its number: no filter can tell whose number it is.
fn neighbour_rules() -> Result<CallRules, seccompiler::BackendError> {
    let shared = SHARED_OBJECTS.iter().map(|call| Ok((*call, Vec::new())));
    let by_process =
        STEERED_BY_PROCESS.iter().map(|call| Ok((*call, vec![SeccompRule::new(vec![is_not(0, 0)?])?])));
    let by_kind = STEERED_BY_KIND.iter().map(|(call, user)| {
        let (of_user, of_other) =
            (SeccompRule::new(vec![is(0, *user)?])?, SeccompRule::new(vec![is_not(1, 0)?])?);
        Ok((*call, vec![of_user, of_other]))
    });
    shared.chain(by_process).chain(by_kind).collect()
}

fn socket_rules(sockets: Sockets) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    match sockets {
        // An empty list of rules matches every call.
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

/// Calls that fail as if the kernel did not know them: `clone3`, `openat2`, and the whole 32-bit pointer
/// variant of x86-64, whose numbers would bypass the rules.
fn absent_calls() -> BpfProgram {
    const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
    const JUMP_EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
    const JUMP_AT_LEAST: u16 = 0x35; // BPF_JMP | BPF_JGE | BPF_K
    const RETURN: u16 = 0x06; // BPF_RET | BPF_K
    const VARIANT_BIT: u32 = 0x4000_0000;
    let absent = u32::from(SeccompAction::Errno(libc::ENOSYS.cast_unsigned()));
    let [clone3, openat2] =
        [libc::SYS_clone3, libc::SYS_openat2].map(|call| u32::try_from(call).unwrap_or(u32::MAX));
    vec![
        // The number of the call is the first field of the filter's input.
        sock_filter { code: LOAD, jt: 0, jf: 0, k: 0 },
        sock_filter { code: JUMP_EQUAL, jt: 2, jf: 0, k: clone3 },
        sock_filter { code: JUMP_EQUAL, jt: 1, jf: 0, k: openat2 },
        sock_filter { code: JUMP_AT_LEAST, jt: 0, jf: 1, k: VARIANT_BIT },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: absent },
    ]
}
