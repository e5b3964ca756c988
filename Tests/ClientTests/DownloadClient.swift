import Foundation
import Testing

/// A program that downloads a URL to standard output, and how it is told whom to trust.
struct DownloadClient: Sendable, CustomTestStringConvertible {
    let name: String
    /// It can be tested if all of these are installed. The first one is run.
    let programs: [String]
    /// - Parameters: the URL and the file with the authority.
    let words: @Sendable (_ url: String, _ root: String) -> [String]
    /// Files that it wants in its directory.
    var files: [String: String] = [:]
    /// What a connection shows if the client does not trust its certificate.
    var refusal = Refusal.alert

    enum Refusal {
        /// An alert of TLS, which says so.
        case alert
        /// Only that the connection ends.
        case close
        /// An alert that may be lost, because the client resets the connection at once.
        case either
    }

    static let all = [
        DownloadClient(
            name: "curl", programs: ["curl"], words: { ["-q", "-sS", "-m", "20", "--cacert", $1, $0] }),
        DownloadClient(
            name: "wget", programs: ["wget"],
            words: { ["-q", "-T", "20", "-t", "1", "--no-config", "--ca-certificate=\($1)", "-O", "-", $0] },
            refusal: .close),
        DownloadClient(name: "python3", programs: ["python3"], words: { ["-c", python, $0, $1] }),
        DownloadClient(
            name: "java HttpURLConnection", programs: ["java", "javac"],
            words: { ["Client.java", $0, $1, "HttpURLConnection"] }, files: ["Client.java": java]),
        DownloadClient(
            name: "java HttpClient", programs: ["java", "javac"], words: { ["Client.java", $0, $1, "HttpClient"] },
            files: ["Client.java": java], refusal: .either),
    ]

    var isInstalled: Bool { programs.allSatisfy { installed($0) != nil } }
    var testDescription: String { name }

    func download(_ url: String, _ host: ProxiedHost, trusting root: String) async throws -> Workplace.Output {
        for (name, text) in files { try host.place.write(name, text.utf8) }
        var environment = host.proxy
        environment["JAVA_TOOL_OPTIONS"] = host.javaOptions
        return try await host.place.run(programs[0], words(url, root), environment: environment)
    }

    private static let python = """
        import ssl, sys, urllib.request
        context = ssl.create_default_context(cafile=sys.argv[2])
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        sys.stdout.buffer.write(urllib.request.urlopen(sys.argv[1], context=context, timeout=20).read())
        """

    private static let java = """
        import java.io.*;
        import java.net.*;
        import java.net.http.*;
        import java.security.KeyStore;
        import java.security.cert.CertificateFactory;
        import javax.net.ssl.*;

        public class Client {
            public static void main(String[] words) throws Exception {
                KeyStore store = KeyStore.getInstance("PKCS12");
                store.load(null, null);
                store.setCertificateEntry(
                    "root", CertificateFactory.getInstance("X.509").generateCertificate(new FileInputStream(words[1])));
                TrustManagerFactory trust = TrustManagerFactory.getInstance("PKIX");
                trust.init(store);
                SSLContext context = SSLContext.getInstance("TLS");
                context.init(null, trust.getTrustManagers(), null);
                Authenticator login = new Authenticator() {
                    protected PasswordAuthentication getPasswordAuthentication() {
                        return new PasswordAuthentication(
                            System.getProperty("test.user", ""), System.getProperty("test.password", "").toCharArray());
                    }
                };
                InputStream body;
                if (words[2].equals("HttpClient")) {
                    HttpClient client = HttpClient.newBuilder().sslContext(context).authenticator(login).build();
                    body = client.send(
                        HttpRequest.newBuilder(URI.create(words[0])).build(),
                        HttpResponse.BodyHandlers.ofInputStream()).body();
                } else {
                    Authenticator.setDefault(login);
                    HttpsURLConnection.setDefaultSSLSocketFactory(context.getSocketFactory());
                    body = new URL(words[0]).openStream();
                }
                body.transferTo(System.out);
                System.out.flush();
            }
        }
        """
}
