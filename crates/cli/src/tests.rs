//! Tests that hold for every command.

mod man_pages;

use clap::{Arg, Command, CommandFactory};

use crate::Cli;

/// Every command, with the names that lead to it.
fn commands() -> Vec<(String, Command)> {
    let mut found = Vec::new();
    let mut left = vec![(String::new(), Cli::command())];
    while let Some((path, mut command)) = left.pop() {
        command.build();
        let path = format!("{path} {}", command.get_name()).trim().to_owned();
        for inner in command.get_subcommands() {
            // Made by clap.
            if inner.get_name() != "help" {
                left.push((path.clone(), inner.clone()));
            }
        }
        found.push((path, command));
    }
    found
}

fn arguments() -> Vec<(String, Arg)> {
    let of = |(path, command): (String, Command)| {
        let arguments: Vec<_> = command.get_arguments().cloned().collect();
        arguments.into_iter().map(move |it| (path.clone(), it))
    };
    commands().into_iter().flat_map(of).collect()
}

#[test]
fn clap_finds_nothing_wrong_with_the_commands() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_and_option_has_help() {
    for (path, command) in commands() {
        let about = command.get_about().map(ToString::to_string);
        assert!(about.is_some_and(|about| !about.is_empty()), "{path}");
    }
    for (path, argument) in arguments() {
        let help = argument.get_help().map(ToString::to_string);
        let id = argument.get_id();
        assert!(help.is_some_and(|help| !help.is_empty()), "{path}: {id}");
    }
}

// fault X7: the options of secrets stand under the heading of the window, or under none
#[test]
fn options_of_secrets_stand_under_their_own_heading() {
    let of_secrets = [
        "secret_env",
        "secret_file",
        "any_secret",
        "other_env",
        "other_file",
    ];
    for (path, argument) in arguments() {
        let is_of_secrets = of_secrets.contains(&argument.get_id().as_str());
        let is_there = argument.get_help_heading() == Some("Secret");
        assert_eq!(is_there, is_of_secrets, "{path}: {}", argument.get_id());
    }
}

/// Those without it take all deliveries of a log that their filters leave, measure them together,
/// or write one.
#[test]
fn every_command_that_takes_a_delivery_of_a_log_takes_its_line() {
    const ALL: [&str; 4] = [
        "hookgate doctor",
        "hookgate inbox erase",
        "hookgate listen",
        "hookgate simulate",
    ];
    let mut with_line = Vec::new();
    for (path, command) in commands() {
        let has = |id: &str| {
            command
                .get_arguments()
                .any(|argument| argument.get_id() == id)
        };
        if has("log") {
            assert_ne!(has("line"), ALL.contains(&&*path), "{path}");
            with_line.extend(has("line").then_some(path));
        }
    }
    with_line.sort();
    let expected = [
        "explain", "log curl", "log list", "log show", "replay", "verify",
    ];
    assert_eq!(with_line, expected.map(|name| format!("hookgate {name}")));
}

/// Whether an option's value could be a secret. The name of a thing that holds one is none.
fn takes_a_secret(argument: &Arg) -> bool {
    let values: Vec<_> = argument
        .get_value_names()
        .unwrap_or_default()
        .iter()
        .map(|name| name.to_lowercase())
        .collect();
    let names = [
        argument.get_id().as_str(),
        argument.get_long().unwrap_or_default(),
    ];
    let sounds_secret = |name: &str| {
        ["secret", "key", "token", "password", "credential"]
            .iter()
            .any(|word| name.to_lowercase().contains(word))
    };
    let only_names = ["variable", "path", "file", "name"];
    argument.get_action().takes_values()
        && (values.iter().any(|name| sounds_secret(name))
            || names.iter().any(|name| sounds_secret(name))
                && !values
                    .iter()
                    .any(|name| only_names.contains(&name.as_str())))
}

#[test]
fn no_option_takes_a_secret_as_its_value() {
    for (path, argument) in arguments() {
        assert!(!takes_a_secret(&argument), "{path}: {}", argument.get_id());
    }
    // The rule would find one.
    for planted in [
        Arg::new("secret").long("secret"),
        Arg::new("with").long("with").value_name("SECRET"),
        Arg::new("api_key").long("api-key").value_name("VALUE"),
        Arg::new("token"),
    ] {
        let mut command = Command::new("planted").arg(planted);
        command.build();
        assert!(command.get_arguments().any(takes_a_secret));
    }
}

/// A number needs a unit: either its help names one, or the value's name is one.
#[test]
fn what_takes_a_time_or_a_size_says_in_what() {
    let measures = ["seconds", "bytes", "duration", "millis", "time", "size"];
    for (path, argument) in arguments() {
        let values = argument.get_value_names().unwrap_or_default();
        let measured = values.iter().any(|name| {
            let name = name.to_lowercase();
            measures.iter().any(|measure| name.contains(measure))
        });
        if !measured || !argument.get_action().takes_values() {
            continue;
        }
        let help = argument
            .get_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        let help = format!("{} {values:?}", help.to_lowercase());
        let units = ["second", "byte", "mib", "iso 8601", "unix"];
        // Such as 30s.
        let mut words = help.split(|char: char| !char.is_alphanumeric());
        let example = words.any(|word| crate::durations::parse(word).is_ok());
        assert!(
            example || units.iter().any(|unit| help.contains(unit)),
            "{path}: {} does not say its unit: {help}",
            argument.get_id()
        );
    }
}

/// The pieces of code in the documents that are command lines of ours.
fn documented() -> Vec<&'static str> {
    let documents = [
        include_str!("../../../docs/command.md"),
        include_str!("../../../docs/try-it.md"),
        include_str!("../../../docs/erasure.md"),
        include_str!("../../../docs/operations.md"),
        include_str!("../../../docs/runbook.md"),
        include_str!("../../../docs/explain.md"),
    ];
    let mut found = Vec::new();
    for document in documents {
        let code = document
            .lines()
            .flat_map(|line| line.split('`'))
            .map(str::trim);
        let ours = code.filter(|code| code.starts_with("hookgate "));
        found.extend(ours.filter(|code| !code.contains("COMMAND")));
    }
    found
}

#[test]
fn every_command_line_of_the_documents_is_understood() {
    let documented = documented();
    assert!(documented.len() >= 15, "{documented:?}");
    for line in documented {
        let line = line.split(" #").next().unwrap();
        let mut command = Cli::command();
        command.build();
        let mut command = &command;
        for word in line.split_whitespace().skip(1) {
            if let Some(option) = word.strip_prefix("--") {
                let option = option.split('=').next().unwrap();
                let is_known = command
                    .get_arguments()
                    .any(|known| known.get_long() == Some(option));
                assert!(is_known, "{line}: --{option}");
            } else if let Some(below) = command.find_subcommand(word) {
                command = below;
            } else {
                assert!(!command.has_subcommands(), "{line}: {word}");
            }
        }
    }
}

#[test]
fn each_command_stands_in_one_group_of_the_help() {
    let mut shown: Vec<_> = crate::GROUPS.iter().flat_map(|(_, names)| *names).collect();
    shown.push(&"completions");
    let command = Cli::command();
    let mut all: Vec<_> = command.get_subcommands().map(Command::get_name).collect();
    shown.sort();
    all.sort_unstable();
    assert!(shown.into_iter().eq(&all), "{all:?}");
    let help = crate::in_groups(Cli::command()).render_help().to_string();
    for text in [
        "Find out why:\n  explain ",
        "\nUsage: hookgate",
        "--json",
        "Exit codes:",
    ] {
        assert!(help.contains(text), "{help}");
    }
}

/// The command lines in the messages of this crate: from the name of a command to the first word
/// that is not one of its arguments.
fn hints() -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    let mut folders = vec![std::path::PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/src"
    ))];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.ends_with("src/tests.rs") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for line in text.split("#[cfg(test)]").next().unwrap().lines() {
                let is_comment = line.trim_start().starts_with("//");
                let hints = line.split("hookgate ").skip(1).filter(|_| !is_comment);
                found.extend(hints.map(|hint| (path.display().to_string(), words(hint))));
            }
        }
    }
    found
}

fn words(hint: &str) -> Vec<String> {
    let mut command = &Cli::command();
    let mut words = Vec::new();
    for word in hint.split([' ', ';', ',', ')', '"', '`', '\n']) {
        let possible: Vec<_> = command
            .get_positionals()
            .flat_map(Arg::get_possible_values)
            .collect();
        let is_name = word.starts_with(|first: char| first.is_ascii_lowercase());
        if let Some(below) = command.find_subcommand(word) {
            command = below;
        } else if word.is_empty()
            || is_name
                && !word.contains('.')
                && !possible.iter().any(|value| value.matches(word, false))
        {
            break;
        }
        words.push(word.trim_matches(':').replace(['{', '}'], "x"));
    }
    words
}

#[test]
fn a_hint_is_a_command_line_that_is_understood() {
    let mut whole = 0;
    for (path, words) in hints() {
        let command = Cli::command();
        let below = words.first().and_then(|name| command.find_subcommand(name));
        // Prose, such as the name of the program in a message.
        let Some(below) = below else { continue };
        let mut rest = words.iter().skip(1).peekable();
        while rest
            .next_if(|word| below.find_subcommand(word).is_some())
            .is_some()
        {}
        // A command that is named alone, without arguments.
        if rest.next().is_none() {
            continue;
        }
        whole += 1;
        let mut line = [&["hookgate".to_owned()], &words[..]].concat();
        // The program writes the URL behind it.
        if line.last().is_some_and(|last| last == "--to") {
            line.push("x".to_owned());
        }
        let parsed = Cli::command().try_get_matches_from(&line);
        // Help that is asked for comes as an error too.
        let wrong = parsed.err().filter(clap::Error::use_stderr);
        assert!(wrong.is_none(), "{path}: {line:?}: {wrong:?}");
    }
    assert!(whole >= 7, "{whole}");
}
