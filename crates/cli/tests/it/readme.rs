//! The table of commands in `docs/command.md`, against the command.

const PAGE: &str = include_str!("../../../../docs/command.md");

/// The table of commands names the existing ones.
#[test]
fn the_workbench_lists_every_command() {
    let help = crate::cli::Ran::of(&["--help"]).stdout;
    // The groups of commands stand before the options. A longer description goes on in lines with
    // more spaces before them.
    let commands = help.split("\nOptions:\n").next().unwrap().lines();
    let mut there: Vec<_> = commands
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    there.sort_unstable();

    let cells = PAGE.lines().filter_map(|line| line.strip_prefix("| `"));
    let cells = cells.filter_map(|line| line.split(" | ").next());
    let mut listed = Vec::new();
    for cell in cells {
        let names = cell.trim_start_matches("hookgate ").split("`, `");
        let mut names = names.filter_map(|name| name.split([' ', '`']).next());
        let first = names.next().unwrap();
        listed.push(first);
        // Behind these stand their subcommands.
        listed.extend(names.filter(|_| !["api", "log", "inbox"].contains(&first)));
    }
    listed.sort_unstable();
    assert_eq!(listed, there);
}
