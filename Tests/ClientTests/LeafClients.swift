import Foundation
import Testing

/// A program that fetches an https URL through a `LeafServer` and trusts one root.
struct LeafClient: Sendable, CustomTestStringConvertible {
    let name: String
    /// What must be installed.
    var programs: [String]
    /// Whether it heeds name constraints of a root. All of them heed those of an intermediate.
    var heedsRoot = true
    /// Whether the program can ask for an address here.
    var knowsAddresses = true
    /// Run before, with the directory of the authority, in which the files of `sources` are.
    var preparation: String?
    var sources: [String: String] = [:]
    /// With $url, $host, $proxy, $port, $root, and $ca for the directory of the authority. The exit status tells whether the certificate
    /// was accepted.
    var command: String

    var testDescription: String { name }
    var isInstalled: Bool { programs.allSatisfy { installed($0) != nil } }

    static let all = [
        LeafClient(
            name: "OpenSSL, strict", programs: ["openssl"],
            command: #"""
                case $host in *[g-z]*) check="-verify_hostname $host -servername $host" ;; *) check="-verify_ip $host" ;; esac
                printf 'GET / HTTP/1.0\r\n\r\n' | openssl s_client -proxy 127.0.0.1:$port -connect "$address:443" $check \
                    -x509_strict -verify_return_error -CAfile "$root" -quiet
                """#),
        LeafClient(
            name: "Python, strict", programs: ["python3"], sources: ["strict.py": python],
            command: #"python3 "$ca/strict.py" "$url" "$root" "$proxy""#),
        LeafClient(
            name: "curl with OpenSSL", programs: ["curl"],
            command: #"curl -sS --proxy "$proxy" --cacert "$root" "$url""#),
        LeafClient(
            name: "Wget with GnuTLS", programs: ["wget"],
            command: #"https_proxy=$proxy wget -t1 -qO- --ca-certificate="$root" "$url""#),
        LeafClient(
            name: "Node.js", programs: ["node"], sources: ["client.js": node],
            command: #"NODE_EXTRA_CA_CERTS=$root node "$ca/client.js" "$url" "$proxy""#),
        LeafClient(
            name: "Go", programs: ["go"], preparation: #"cd "$ca" && go build -o client client.go"#,
            sources: ["client.go": go],
            command: #"HTTPS_PROXY=$proxy SSL_CERT_FILE=$root SSL_CERT_DIR=/none "$ca/client" "$url""#),
        LeafClient(
            name: "Java", programs: ["java", "javac", "keytool"], heedsRoot: false,
            preparation: #"""
                cd "$ca" && javac Client.java &&
                keytool -importcert -noprompt -alias root -file root.pem -keystore trust -storepass changeit
                """#,
            sources: ["Client.java": java],
            command: #"""
                java -cp "$ca" -Djavax.net.ssl.trustStore="$ca/trust" -Djavax.net.ssl.trustStorePassword=changeit \
                    -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=$port Client "$url"
                """#),
        LeafClient(
            name: "uv with rustls", programs: ["uv"],
            // The response is a list of requirements, and an empty one.
            command: #"HTTPS_PROXY=$proxy SSL_CERT_FILE=$root uv pip compile -q --no-header --no-cache "$url""#),
        LeafClient(
            name: "NSS", programs: ["certutil", "tstclnt"], knowsAddresses: false,
            preparation: #"""
                mkdir "$ca/nss" && certutil -d "sql:$ca/nss" -N --empty-password &&
                certutil -d "sql:$ca/nss" -A -n root -t C,, -i "$ca/root.pem" &&
                printf 'GET / HTTP/1.0\r\n\r\n' > "$ca/request"
                """#,
            command: #"tstclnt -h 127.0.0.1 -p $port -a "$host" -d "sql:$ca/nss" -A "$ca/request""#),
    ]

    private static let python = #"""
        import ssl, sys, urllib.request
        context = ssl.create_default_context(cafile=sys.argv[2])
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        proxy = urllib.request.ProxyHandler({"https": sys.argv[3]})
        opener = urllib.request.build_opener(proxy, urllib.request.HTTPSHandler(context=context))
        print(opener.open(sys.argv[1]).read().decode(), end="")
        """#

    private static let node = #"""
        const http = require("http"), https = require("https");
        const url = new URL(process.argv[2]), proxy = new URL(process.argv[3]);
        const host = url.hostname.replace(/^\[|\]$/g, "");
        const tunnel = { host: proxy.hostname, port: proxy.port, method: "CONNECT", path: url.hostname + ":443" };
        http.request(tunnel).on("connect", (response, socket) => {
          const request = https.get({ socket, host, path: "/", agent: false }, (answer) => answer.pipe(process.stdout));
          request.on("error", (error) => { console.error(error.code, error.message); process.exit(1); });
        }).end();
        """#

    private static let go = #"""
        package main

        import (
            "fmt"
            "io"
            "net/http"
            "os"
        )

        func main() {
            response, err := http.Get(os.Args[1])
            if err != nil {
                fmt.Println(err)
                os.Exit(1)
            }
            io.Copy(os.Stdout, response.Body)
        }
        """#

    private static let java = #"""
        public class Client {
            public static void main(String[] words) throws Exception {
                System.out.write(new java.net.URL(words[0]).openStream().readAllBytes());
                System.out.flush();
            }
        }
        """#

    func prepare(_ authority: LeafAuthority) async throws {
        for (name, text) in sources {
            try Data(text.utf8).write(to: URL(fileURLWithPath: "\(authority.directory)/\(name)"))
        }
        guard let preparation else { return }
        let script = "ca=$1 root=$1/root.pem; \(preparation)"
        let made = try await authority.place.run(
            "sh", ["-c", script, "sh", authority.directory], within: .seconds(300))
        try #require(made.status == 0, "\(made)")
    }

    func fetch(_ host: String, _ authority: LeafAuthority, _ server: LeafServer) async throws -> Workplace.Output {
        let script = """
            ca=$1 root=$1/root.pem proxy=$2 port=$3 host=$4
            case $host in *:*) address="[$host]" ;; *) address=$host ;; esac
            url=https://$address/
            \(command)
            """
        return try await authority.place.run(
            "sh", ["-c", script, "sh", authority.directory, server.url, "\(server.port)", host], within: .seconds(120))
    }
}
