let clientManualHead = """
    # Clients

    <!-- Rendered from Sources/ClientSetup by `LARDER_RENDER=1 swift test --filter Rendering`; change it there. -->

    A client needs two things: it must know the proxy, and if Larder opens TLS connections, it must trust Larder's certificate authority.
    One command does both, on every machine that is to use the proxy:

    ```sh
    curl -fsS http://PROXY:3128/setup.sh | sh -s -- --ca-sha256 HEX
    ```

    `larder serve` prints the line with HEX in it, and `larder ca show` prints HEX: the SHA-256 of the root certificate in DER. Without an
    authority leave `--ca-sha256` out; then only the proxy is set.

    ## setup.sh

    As root the script sets up the whole machine, otherwise (or with `--user`) the user who runs it. It runs in every POSIX shell, busybox
    included, and needs `curl`, `wget` or `python3`.

    | option | meaning |
    |---|---|
    | `--ca-sha256 HEX` | the fingerprint; several are separated by commas. If no certificate of the proxy has it, nothing is changed |
    | `--ca-file FILE` | takes the certificate from a file, which must have the fingerprint as well |
    | `--no-proxy LIST` | names and addresses that are reached directly, separated by commas. This machine and the proxy are always among them |
    | `--print FORM` | prints settings and changes nothing: `sh`, `fish`, `env`, `systemd`, `dockerfile`, `github`, `gitlab`, `java` |
    | `--user` | sets up this user, even as root |
    | `--root DIR` | writes below DIR, such as the root of an image, and runs nothing that changes this machine |
    | `--undo` | takes back everything: removes what was written, and restores what was changed |

    It works in this order:

    1. It compares the fingerprint. After that, nothing that the proxy sends is trusted: the bundle is made of this machine's own
       certificates and the one that was compared.
    2. It writes files: Larder's root among the system's certificates (`larder.crt` in `/usr/local/share/ca-certificates`, or the place of
       Fedora, Arch or SUSE), so that updates keep it; the bundle `/etc/larder/ca-bundle.pem`; a trust store for a Java that does not use
       the system's certificates; the files of tools that read no variables.
    3. It writes variables, last, because a program fails if a variable names a file that is not there: `/etc/profile.d/larder.sh`,
       `/etc/environment` if there is one, and `/etc/fish/conf.d` if fish is installed. For a user: a file in `~/.config/larder`, and a line in the files of the shell.

    In a file that existed, the script writes a block between two marks, or leaves the file alone and says so. `/etc/larder/setup.record`
    (`~/.config/larder/setup.record`) lists what was written, and `setup.backups` beside it has what was there before. A second run changes
    nothing, or takes over a new certificate.

    Services and containers have an environment of their own: `--print systemd` for a unit, `--print env` for an environment file, `--print
    dockerfile` for an image. `sudo` drops variables unless `env_keep` names them; apt, dnf and Maven have files that `sudo` does not concern.

    If users must authenticate, write `http://USER:PASSWORD@PROXY:3128` into the variables of each user instead; `setup.sh` stores no
    passwords. curl, wget, git, apt, pip, uv, npm, cargo, go, gem, Composer, skopeo and Python send such a password without being asked, or after
    a 407, and take `%40` for `@`. Three need it elsewhere:

    - Maven: `<username>` and `<password>` of the proxy in `settings.xml`.
    - Java: an `Authenticator` in the program; for https also `-Djdk.http.auth.tunneling.disabledSchemes=`, since Java does not use Basic for tunnels
      otherwise.
    - Node's undici: a password without percent-encoding.

    The script comes over plain HTTP, so whoever can change what passes between client and proxy could change the script as well. The
    fingerprint protects against a proxy that is not the one you mean. In a network that you do not trust, copy `setup.sh` and `ca.pem` from the proxy's
    machine another way, and use `--ca-file`.

    ## larder doctor

    Run it where the client runs, as the user whose tools are to be tested:

    ```
    $ larder doctor
    proxy  http://proxy.example.org:3128 (from https_proxy)

    tool                            proxy  trusts  cached
    curl                            yes    yes     yes
    git                             yes    yes     -
    npm                             yes    NO      yes     curl -fsS --noproxy '*' http://proxy.example.org:3128/setup.sh | sh -s -- --ca-sha256 …
    ```

    It finds the tools that are installed and lets each ask twice, over http and https, for something harmless at `check.larder.internal`, a name
    that Larder alone answers. **proxy**: the request came through the proxy. **trusts**: the tool accepted Larder's certificate. **cached**: the
    second request was answered from the cache. `-` means that this was not tested: no harmless request is known, the tool forbids
    caching, or the proxy does not open TLS connections. Behind a `NO` is what mends it.

    Below the table it lists mistakes in the variables (spaces, `*` and networks in `no_proxy`, a variable that names a file which is missing or lacks
    Larder's certificate), files of certificates that Python packages bring along, and a name server that answers for names which do not
    exist. `--proxy HOST:PORT` names the proxy that answers doctor's own questions, if no variable does; `--json` is for scripts. The exit
    status is 0 if nothing is wrong, and 1 otherwise.

    `larder doctor --server` looks at the proxy's own machine: configuration, room and rights of the disk tier, the users' file, limits of
    descriptors, name servers, clock.

    ## The pages

    The proxy port answers these requests that are addressed to it, and nothing else. They are read-only. Whoever is in `access.clients` may
    read them, without a password; they say nothing that is secret.

    | page | content |
    |---|---|
    | `/ca.pem` | Larder's root certificate; more than one while roots change |
    | `/ca-bundle.pem` | the certificates that the proxy's machine trusts, and Larder's: for images without certificates, and for settings that replace what is trusted |
    | `/truststore.jks` | the same for Java; the password is `changeit` |
    | `/setup.sh` | the script, made for the address at which it was asked for |
    | `/proxy.pac` | the proxy for browsers (proxy auto-configuration). `pac.direct` of the configuration names what they reach without it, such as `*.internal` and `10.0.0.0/8`; there is no second choice behind the proxy |
    | `/wpad.dat` | the same, where browsers look for it by themselves: at `http://wpad.DOMAIN/`, which is port 80. The name has to lead to the proxy, and a listener to that port |

    Without an authority the first three answer 404. The proxy's address in the last three comes from the `Host` field. The bundle and the
    trust store are only as trustworthy as the network; `setup.sh` uses neither.

    """

let clientManualTableHead = """
    *Adds* means that the system's certificates, or the tool's own, still count beside the setting; *replaces*, that they do not. Each
    setting was tried alone with the real program on Debian 12, except where ¹ says that it comes from the program's documentation.


    """

let clientManualVariables = """
    `setup.sh` sets these. The files are in `/etc/larder`, or in `~/.config/larder` for a user.


    """

let clientManualTail = """

    In `no_proxy`, write names (`example.org` is this host, and for most tools every host below it; `.example.org` the hosts below it) and single
    addresses. Networks such as `10.0.0.0/8` work in curl, Go, requests and Ruby alone, and `*.example.org` in Go, Node and huggingface-hub.
    `setup.sh` writes the forms of apt and Java itself.

    """
