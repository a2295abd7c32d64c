use hookgate::Secret;

fn show(secret: &Secret) {
    println!("{secret}");
}

fn main() {}
