//! The man pages, which `scripts/dist` packs.

use clap::CommandFactory as _;

use crate::Cli;

/// A man page. All have the version of the command, and no date: where that is empty, `man` takes
/// the version for it.
fn man_page(command: &clap::Command) -> clap_mangen::Man {
    let version = concat!("hookgate ", env!("CARGO_PKG_VERSION"));
    clap_mangen::Man::new(command.clone())
        .date(" ")
        .source(version)
}

fn write_man_pages(command: &clap::Command, folder: &std::path::Path) {
    man_page(command).generate_to(folder).unwrap();
    for below in command.get_subcommands() {
        write_man_pages(below, folder);
    }
}

/// Written for `scripts/dist` where it names a folder.
#[test]
fn each_command_has_a_man_page() {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let names: Vec<_> = command
        .get_subcommands()
        .map(|below| below.get_name().to_owned())
        .collect();
    let mut page = Vec::new();
    man_page(&command).render(&mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    for name in names {
        assert!(page.contains(&format!("hookgate\\-{name}(1)")), "{name}");
    }
    let mut listed = Vec::new();
    let list = command.find_subcommand("log").unwrap();
    let list = list.find_subcommand("list").unwrap();
    man_page(list).render_title(&mut listed).unwrap();
    let title = String::from_utf8(listed).unwrap();
    assert!(
        title.contains(r#".TH hookgate-log-list 1 " " "hookgate "#),
        "{title}"
    );
    if let Some(folder) = std::env::var_os("HOOKGATE_MAN_PAGES") {
        write_man_pages(&command, folder.as_ref());
    }
}
