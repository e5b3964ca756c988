import Accounts
package import Authentication
package import Credentials
import EventLoop
import LDAP
import Message
package import Settings

/// Asks directories whether passwords are right, on threads of its own: a directory that hangs holds up no worker, and no password of a file. May be
/// used by every thread.
package final class DirectoryDesk: Sendable {
    /// What is needed to ask.
    package struct Terms: Sendable {
        let settings: DirectorySettings
        let accountPassword: Secret?
        let authorityFile: String

        package init(settings: DirectorySettings, accountPassword: Secret?, authorityFile: String) {
            self.settings = settings
            self.accountPassword = accountPassword
            self.authorityFile = authorityFile
        }
    }

    private typealias Then = @Sendable (DirectoryAnswer) -> Void
    private struct State {
        var servers = DirectoryServers()
        /// Who waits for each answer: the requests of a client that come together ask once.
        var waiting: [[UInt8]: [Then]] = [:]
        var waitingCount = 0
        var lastCall = 0
        /// What the log has said of faults.
        var news = ExpiringTable<String, Void>(lifetime: .seconds(60), countMax: 64)
    }
    private let state = Locked(State())
    private let calls = CallPool(name: "directory", threadsMax: threadsMax, waitingMax: waitingMax)

    private static let threadsMax = 8
    /// Requests of all workers that wait for an answer. Beyond: their clients get 503.
    private static let waitingMax = 256

    package init() {}

    /// - Parameter then: called once, on any thread; on this one if too many wait.
    package func check(
        _ question: DirectoryQuestion, _ terms: Terms, then: @escaping @Sendable (DirectoryAnswer) -> Void
    ) {
        let key = question.key
        let call: Int? = state.withLock { state in
            guard state.waitingCount < DirectoryDesk.waitingMax else { return nil }
            state.waitingCount += 1
            state.waiting[key, default: []].append(then)
            guard state.waiting[key]?.count == 1 else { return 0 }
            state.lastCall += 1
            return state.lastCall
        }
        guard let call else { return then(.unavailable) }
        guard call > 0 else { return }
        // Calls of one key run one after the other. These have nothing to do with each other.
        let isTaken = calls.submit(key: "\(call)") { [self] in
            answer(ask(question, terms), to: key)
        }
        if !isTaken { answer(.unavailable, to: key) }
    }

    private func answer(_ answer: DirectoryAnswer, to key: [UInt8]) {
        let waiting = state.withLock { state in
            let waiting = state.waiting.removeValue(forKey: key) ?? []
            state.waitingCount -= waiting.count
            return waiting
        }
        for then in waiting { then(answer) }
    }

    /// Drops the questions that wait.
    package func close() { calls.close() }

    // MARK: on a thread of its own

    /// Asks one directory after the other until one can tell.
    private func ask(_ question: DirectoryQuestion, _ terms: Terms) -> DirectoryAnswer {
        var tried: Set<DirectoryURL> = []
        // An attempt connects, begins TLS and sends up to four requests.
        let limit = terms.settings.timeout * 6
        while let url = state.withLock({
            $0.servers.next(of: terms.settings.urls, after: tried, now: MonotonicTime.read().sinceStart, limit: limit)
        }) {
            tried.insert(url)
            switch outcome(at: url, question, terms) {
            case .accepted(let user):
                noteSuccess(url)
                return .accepted(user)
            case .refused(let refusal):
                noteSuccess(url)
                Diagnostics.debug(
                    .authentication, "\(url) does not accept \(question.credentials.user): \(refusal.text)")
                return .refused
            case .failed(let fault): note(fault, at: url)
            }
        }
        return .unavailable
    }

    private func outcome(
        at url: DirectoryURL, _ question: DirectoryQuestion, _ terms: Terms
    ) -> DirectoryDialogue.Outcome {
        let settings = terms.settings
        var dialogue = DirectoryDialogue(
            settings, user: question.credentials.user, password: Secret(question.credentials.password),
            accountPassword: terms.accountPassword)
        do throws(LDAPFailure) {
            let connection = try LDAPConnection(
                LDAPPlace(
                    url: "\(url)", startsTLS: settings.startsTLS && !url.isSecured, authorityFile: terms.authorityFile,
                    timeout: settings.timeout))
            var action = dialogue.start()
            while true {
                switch action {
                case .bind(let name, let password):
                    let code = try connection.bind(name: name, password: password.bytes)
                    action = dialogue.on(DirectoryReply(DirectoryCode(code)))
                case .search(let search): action = dialogue.on(try reply(to: search, on: connection))
                case .finish(let outcome): return outcome
                }
            }
        } catch {
            return .failed(.connection(error.text))
        }
    }

    private func reply(
        to search: DirectorySearch, on connection: LDAPConnection
    ) throws(LDAPFailure) -> DirectoryReply {
        let (code, entries) = try connection.search(
            base: search.base, isWholeTree: search.scope == .subtree, filter: search.filter,
            attributes: search.attributes, countMax: search.countMax)
        return DirectoryReply(
            DirectoryCode(code), entries.map { DirectoryEntry(dn: $0.dn, attributes: $0.attributes) })
    }

    private func noteSuccess(_ url: DirectoryURL) {
        guard state.withLock({ $0.servers.succeeded(url) }) else { return }
        Diagnostics.info("access.authentication.directory: \(url) answers again")
    }

    private func note(_ fault: DirectoryFault, at url: DirectoryURL) {
        let now = MonotonicTime.read().sinceStart
        let text = "access.authentication.directory: \(url) cannot be used: \(fault.text)"
        let isNews = state.withLock { state in
            guard !fault.isOfDirectory else { return state.servers.failed(url, now: now) }
            defer { state.news.set(text, (), now: now) }
            return state.news.value(text, now: now) == nil
        }
        if isNews { Diagnostics.warning(text) } else { Diagnostics.debug(.authentication, text) }
    }
}

/// The file with the authorities that the certificates of directories come from. The library does not know those of the system.
package func directoryAuthorities(_ configuration: Configuration) -> String {
    configuration.access.authentication.directory.authorityFile ?? configuration.tls.caFile ?? systemAuthorities
}

/// Where Debian's package ca-certificates puts them.
private let systemAuthorities = "/etc/ssl/certs/ca-certificates.crt"
