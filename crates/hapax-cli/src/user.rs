//! Who runs this program.

use std::{env, fs};

/// The name of the user, as far as it can be told: in a container there may be no `USER`, and no
/// name for the number.
pub(crate) fn user_name() -> String {
    let said = ["USER", "LOGNAME"].into_iter().filter_map(|name| env::var(name).ok());
    let mut said = said.filter(|name| !name.trim().is_empty());
    let uid = rustix::process::geteuid().as_raw();
    said.next()
        .or_else(|| name_of(uid, &fs::read_to_string("/etc/passwd").ok()?))
        .unwrap_or_else(|| format!("uid {uid}"))
}

/// The name that this table of users has for the number.
fn name_of(uid: u32, table: &str) -> Option<String> {
    let uid = uid.to_string();
    table.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, found) = (fields.next()?, fields.nth(1)?);
        (found == uid && !name.is_empty()).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_the_name_that_the_table_of_users_says() {
        let table = "root:x:0:0:root:/root:/bin/bash\nada:x:1000:1000::/:/bin/sh\n";
        assert_eq!(name_of(1000, table).as_deref(), Some("ada"));
        assert_eq!(name_of(100, table), None);
    }
}
