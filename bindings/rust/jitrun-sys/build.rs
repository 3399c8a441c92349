//! Where the library is: in `JITRUN_LIB_DIR`, where pkg-config says, or where the linker looks anyway.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=JITRUN_LIB_DIR");
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    println!("cargo:rustc-link-lib=dylib=jitrun");
    if let Some(dir) = env::var_os("JITRUN_LIB_DIR") {
        println!("cargo:rustc-link-search=native={}", dir.to_string_lossy());
        return;
    }
    let asked = Command::new("pkg-config").args(["--libs-only-L", "jitrun"]).output();
    if let Ok(said) = asked {
        if said.status.success() {
            for word in String::from_utf8_lossy(&said.stdout).split_whitespace() {
                if let Some(dir) = word.strip_prefix("-L") {
                    println!("cargo:rustc-link-search=native={}", dir);
                }
            }
        }
    }
}
