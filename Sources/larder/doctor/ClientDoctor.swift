import CLarder
import ClientSetup
import EventLoop
import Glibc
import Message
import Provisioning
import Requesting
import TLS
import Upstream

/// What `larder doctor` finds out about a client: its proxy, each tool, its variables.
struct ClientExamination {
    struct Row {
        let tool: Tool
        let verdict: ToolVerdict
        let program: String
        /// What the tool printed when something was wrong: one line. Empty if nothing was.
        let said: String
    }

    let proxy: ClientProxy
    var facts: DoctorFacts
    var rows: [Row] = []
    var findings: [Finding] = []
    /// What is worth knowing, and not wrong.
    var remarks: [String] = []

    var isFine: Bool { findings.isEmpty && rows.allSatisfy(\.verdict.isFine) }
}

/// Examines a client. Blocks, for as long as its tools take.
struct ClientDoctor {
    struct Failure: Error {
        let message: String
        let mend: String
    }

    private let proxy: ClientProxy
    private let addresses: [SocketAddress]
    private let environment: [String: String]
    private let client: Client
    /// For pages of the proxy's own.
    private let pages: Client
    private let run: CheckOrigin.RunName

    init(_ proxy: ClientProxy, environment: [String: String]) throws(Failure) {
        self.proxy = proxy
        self.environment = environment
        do throws(ProxyAddressFailure) {
            addresses = try proxyAddresses(named: proxy.place)
        } catch {
            throw Failure(message: "\(proxy.source): \(error.message)", mend: "correct \(proxy.source)")
        }
        do throws(ClientError) {
            client = try proxyClient(addresses, proxy.fields)
            pages = try Client(.server(addresses, own: proxy.fields.map { RequestForm.Field($0.name, $0.value) }))
        } catch { throw Failure(message: "\(error)", mend: "raise the limits of this user") }
        run = CheckOrigin.RunName(random: (ClientDoctor.random(), ClientDoctor.random()))
    }

    private static func random() -> UInt64 {
        var number: UInt64 = 0
        let status = unsafe withUnsafeMutableBytes(of: &number) { unsafe clarder_random($0.baseAddress, $0.count) }
        precondition(status == 0, "the system returned no random numbers")
        return number
    }

    /// - Parameter examined: is called with each tool when it has been examined.
    func examine(_ examined: (ClientExamination.Row) -> Void) throws(Failure) -> ClientExamination {
        _ = try sightings()
        guard let directory = makeDirectory() else {
            throw Failure(message: "there is no room for temporary files", mend: "set TMPDIR")
        }
        defer { unsafe clarder_remove_tree(directory) }
        let roots = try authority()
        let facts = try facts(roots, directory)
        var examination = ClientExamination(proxy: proxy, facts: facts)
        examination.findings = environmentFindings(environment) { bundleProblem($0, roots) }
        examination.remarks = remarks(roots, facts)
        for (number, tool) in Tool.all.enumerated() {
            guard let program = tool.programs.lazy.compactMap({ findProgram($0, path: path) }).first else { continue }
            let row = try examine(tool, number, program, facts, below: directory)
            examination.rows.append(row)
            examined(row)
        }
        return examination
    }

    private var path: String { environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin" }

    private func makeDirectory() -> String? {
        var template = Array("\(environment["TMPDIR"] ?? "/tmp")/larder-doctor-XXXXXX".utf8CString)
        guard unsafe mkdtemp(&template) != nil else { return nil }
        return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    // MARK: the proxy

    /// What has reached the origin in this run.
    private func sightings() throws(Failure) -> [CheckRecords.Sighting: Int] {
        let answer = try ask(client, "http://\(CheckOrigin.host)/doctor/\(run.text)/seen")
        switch answer.status {
        case 200: return CheckRecords.read(String(decoding: answer.body, as: UTF8.self))
        case 407:
            throw Failure(
                message: "\(proxy.url) wants a password", mend: "export https_proxy=http://USER:PASSWORD@\(proxy.place)"
            )
        case 403:
            throw Failure(
                message: "\(proxy.url) refuses this client", mend: "add its address to access.clients of the proxy")
        default:
            throw Failure(
                message: "\(proxy.url) does not know \(CheckOrigin.host) (status \(answer.status))",
                mend: "is it a Larder of this version?")
        }
    }

    /// The certificates of `/ca.pem`. None without an authority.
    private func authority() throws(Failure) -> [[UInt8]] {
        let answer = try ask(pages, "http://\(proxy.place)/ca.pem")
        return answer.status == 200 ? PEMCertificates.read(answer.body) : []
    }

    private func ask(_ client: Client, _ url: String) throws(Failure) -> (status: Int, body: [UInt8]) {
        do throws(ClientError) {
            return try blocking { () throws(ClientError) in
                let response = try await client.send(Request(.get, url))
                return (response.status, try await response.body.collect(first: 1 << 20).bytes)
            }
        } catch {
            throw Failure(
                message: "\(proxy.url) (from \(proxy.source)): \(textOfProxyError(error))",
                mend: "start it, or correct \(proxy.source)")
        }
    }

    private func facts(_ roots: [[UInt8]], _ directory: String) throws(Failure) -> DoctorFacts {
        var opens = false
        if !roots.isEmpty {
            let file = "\(directory)/ca.pem"
            do throws(FileError) {
                try replaceFile(file, with: PEMCertificates.write(roots))
            } catch { throw Failure(message: error.text, mend: "set TMPDIR") }
            opens = opensTLS(to: CheckOrigin.host, through: addresses, fields: proxy.fields, authority: file)
        }
        let fingerprints = roots.map(fingerprint)
        return DoctorFacts(
            proxy: proxy.url, opensTLS: opens,
            fingerprint: fingerprints.isEmpty ? nil : fingerprints.joined(separator: ","), bundle: bundle,
            variables: Set(environment.filter { !$0.value.isEmpty }.keys))
    }

    /// Where setup.sh has put the bundle.
    private var bundle: String? {
        let home = environment["XDG_CONFIG_HOME"] ?? environment["HOME"].map { "\($0)/.config" }
        let places = [home.map { "\($0)/larder/ca-bundle.pem" }, "/etc/larder/ca-bundle.pem"].compactMap { $0 }
        return places.first(where: fileExists)
    }

    private func remarks(_ roots: [[UInt8]], _ facts: DoctorFacts) -> [String] {
        var remarks: [String] = []
        if roots.isEmpty {
            remarks.append("the proxy has no certificate authority, so https is not opened and not tested")
        } else if !facts.opensTLS {
            remarks.append("the proxy does not open TLS connections to \(CheckOrigin.host), so https is not tested")
        }
        if hasAddress(CheckOrigin.host) {
            remarks.append(
                "the name server answers for \(CheckOrigin.host), which does not exist: a tool may go past the proxy unnoticed"
            )
        }
        guard !roots.isEmpty else { return remarks }
        for file in bundledCertificates(path: path) where bundleProblem(file, roots) == .lacksAuthority {
            remarks.append(
                "\(file) lacks Larder's certificate: what reads it needs REQUESTS_CA_BUNDLE or SSL_CERT_FILE")
        }
        return remarks
    }

    // MARK: tools

    private func examine(
        _ tool: Tool, _ number: Int, _ program: String, _ facts: DoctorFacts, below directory: String
    ) throws(Failure) -> ClientExamination.Row {
        var results: [ProbeResult] = []
        for way in tool.probe?.ways ?? [] where way == .http || facts.opensTLS {
            let mark = "\(run.text)/\(number)-\(way.rawValue)"
            guard let first = once(tool, program, way, mark, "\(directory)/\(number)-\(way.rawValue)-1") else {
                return ClientExamination.Row(
                    tool: tool, verdict: .untested, program: program, said: "\(program) cannot be started")
            }
            let afterFirst = try sightings().filter { $0.key.path.contains(mark) }
            guard !afterFirst.isEmpty else {
                results.append(
                    ProbeResult(way, first: [:], second: [:], output: first.output, timedOut: first.timedOut))
                continue
            }
            _ = once(tool, program, way, mark, "\(directory)/\(number)-\(way.rawValue)-2")
            let afterSecond = try sightings().filter { $0.key.path.contains(mark) }
            results.append(ProbeResult(way, first: afterFirst, second: afterSecond, output: first.output))
        }
        let verdict = judge(tool, results, facts)
        let failed = results.first { $0.first.isEmpty }
        let words = verdict.isFine ? "" : tellingLine(failed?.output ?? "")
        return ClientExamination.Row(tool: tool, verdict: verdict, program: program, said: words)
    }

    private func once(
        _ tool: Tool, _ program: String, _ way: ToolProbe.Way, _ mark: String, _ directory: String
    ) -> ToolOutcome? {
        guard let probe = tool.probe else { preconditionFailure("a tool that is run has a probe") }
        makeDirectories(directory, mode: 0o700)
        return runTool(
            probe.filled(program: program, way: way, path: "/doctor/\(mark)", directory: directory), in: directory)
    }

    // MARK: certificates

    private func bundleProblem(_ file: String, _ roots: [[UInt8]]) -> BundleProblem? {
        do throws(FileError) {
            let found = PEMCertificates.read(try readFile(file))
            return roots.isEmpty || roots.contains(where: found.contains) ? nil : .lacksAuthority
        } catch { return .missing }
    }
}

private func hasAddress(_ host: String) -> Bool {
    var list: UnsafeMutablePointer<addrinfo>?
    guard unsafe getaddrinfo(host, nil, nil, &list) == 0 else { return false }
    unsafe freeaddrinfo(list)
    return true
}
