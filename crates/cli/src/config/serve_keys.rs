//! The keys of `[serve]` that hold one value.

use std::time::Duration;

use super::error::shown;
use super::keys::{SettingKey, SettingRefusal};
use super::serve::AccessLogTarget;
use super::{Sourced, serve};

pub(super) const SERVE_KEYS: &[SettingKey] = &[
    SettingKey {
        path: "serve.workspaces",
        expected: "an array of paths",
        assign: |config, input, origin| {
            let value = input.paths(config.home.as_deref())?;
            if value.is_empty() {
                return Err(SettingRefusal::Because("name at least one directory".to_owned()));
            }
            config.serve.workspaces = Some(Sourced { value, origin });
            Ok(())
        },
    },
    SettingKey {
        path: "serve.hosts",
        expected: "an array of host names, such as \"agent.example.com\"",
        assign: |config, input, origin| {
            let value = input.words()?;
            if let Some(wrong) = value.iter().find(|host| !serve::is_host(host)) {
                let reason = format!("\"{}\" is no host name; leave out scheme and path", shown(wrong));
                return Err(SettingRefusal::Because(reason));
            }
            config.serve.hosts = Sourced { value, origin };
            Ok(())
        },
    },
    SettingKey {
        path: "serve.origins",
        expected: "an array of origins, such as \"https://app.example.com\"",
        assign: |config, input, origin| {
            let value = input.words()?;
            if let Some(wrong) = value.iter().find(|origin| !serve::is_origin(origin)) {
                let reason =
                    format!("\"{}\" is no origin: scheme://host, with a port if it has one", shown(wrong));
                return Err(SettingRefusal::Because(reason));
            }
            config.serve.origins = Sourced { value, origin };
            Ok(())
        },
    },
    SettingKey {
        path: "serve.drain_seconds",
        expected: "a whole number from 0 to 3600",
        assign: |config, input, origin| {
            let value = Duration::from_secs(input.number(0, 3_600)?);
            config.serve.drain = Sourced { value, origin };
            Ok(())
        },
    },
    SettingKey {
        path: "serve.idle_seconds",
        expected: "a whole number from 1 to 86400",
        assign: |config, input, origin| {
            let value = Duration::from_secs(input.number(1, 86_400)?);
            config.serve.idle = Sourced { value, origin };
            Ok(())
        },
    },
    SettingKey {
        path: "serve.access_log",
        expected: "\"stderr\", \"off\" or the path of a file",
        assign: |config, input, origin| {
            let value = match input.text()? {
                "" => return Err(SettingRefusal::Mismatch),
                "stderr" => AccessLogTarget::Stderr,
                "off" => AccessLogTarget::Off,
                path => AccessLogTarget::File(input.path(path, config.home.as_deref())?),
            };
            config.serve.access_log = Sourced { value, origin };
            Ok(())
        },
    },
    SettingKey {
        path: "serve.proxies",
        expected: "an array of addresses, such as \"127.0.0.1\"",
        assign: |config, input, origin| {
            let words = input.words()?;
            let value = words.iter().map(|word| {
                let reason = || format!("\"{}\" is no address of IPv4 or IPv6", shown(word));
                word.parse().map_err(|_| SettingRefusal::Because(reason()))
            });
            config.serve.proxies = Sourced { value: value.collect::<Result<_, _>>()?, origin };
            Ok(())
        },
    },
    SettingKey {
        path: "serve.per_token.connections",
        expected: "a whole number from 1 to 4096",
        assign: |config, input, origin| {
            let value = u32::try_from(input.number(1, 4096)?).map_err(|_| SettingRefusal::Mismatch)?;
            config.serve.per_token.connections = Some(Sourced { value, origin });
            Ok(())
        },
    },
    SettingKey {
        path: "serve.per_token.prompts_per_minute",
        expected: "a whole number from 1 to 1000000",
        assign: |config, input, origin| {
            let value = u32::try_from(input.number(1, 1000000)?).map_err(|_| SettingRefusal::Mismatch)?;
            config.serve.per_token.prompts_per_minute = Some(Sourced { value, origin });
            Ok(())
        },
    },
    SettingKey {
        path: "serve.per_token.bytes_per_minute",
        expected: "a whole number from 1024 to 1099511627776",
        assign: |config, input, origin| {
            let value = input.number(1024, 1099511627776)?;
            config.serve.per_token.bytes_per_minute = Some(Sourced { value, origin });
            Ok(())
        },
    },
    SettingKey {
        path: "serve.per_address.connections",
        expected: "a whole number from 1 to 4096",
        assign: |config, input, origin| {
            let value = u32::try_from(input.number(1, 4096)?).map_err(|_| SettingRefusal::Mismatch)?;
            config.serve.per_address.connections = Some(Sourced { value, origin });
            Ok(())
        },
    },
    SettingKey {
        path: "serve.per_address.prompts_per_minute",
        expected: "a whole number from 1 to 1000000",
        assign: |config, input, origin| {
            let value = u32::try_from(input.number(1, 1000000)?).map_err(|_| SettingRefusal::Mismatch)?;
            config.serve.per_address.prompts_per_minute = Some(Sourced { value, origin });
            Ok(())
        },
    },
    SettingKey {
        path: "serve.per_address.bytes_per_minute",
        expected: "a whole number from 1024 to 1099511627776",
        assign: |config, input, origin| {
            let value = input.number(1024, 1099511627776)?;
            config.serve.per_address.bytes_per_minute = Some(Sourced { value, origin });
            Ok(())
        },
    },
];
