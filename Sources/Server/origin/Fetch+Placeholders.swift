import Access
import Credentials
import Forwarding
import Message
import Routing
import Transaction

/// What a fetch does about the placeholders of `credentials`.
///
/// An object, because few fetches have one, and each of them asks several times whether it has.
final class Substitution {
    /// The secret that goes out in place of a placeholder.
    struct Secrets {
        let secret: Secret
        /// Where the placeholder stood in the head. Nil: in the body.
        let use: PlaceholderUse?
        let placeholder: Placeholder
        /// The members of the answer that are new secrets.
        let renewals: [PlaceholderRenewal]
    }

    /// An answer with new secrets. The body is kept until it is whole.
    struct RenewingAnswer {
        let syntax: MemberSyntax
        let hasLength: Bool
        var bytes: [UInt8] = []
    }

    /// The body is kept until it is whole, because a member of it may be a placeholder.
    struct HeldBody {
        let syntax: MemberSyntax
        let places: PlaceholderPlaces
        let credential: String
        var bytes: [UInt8] = []
    }
    let index: PlaceholderIndex
    var secrets: Secrets?
    /// Looks for placeholders in a body that is sent while it comes.
    var scanner = PlaceholderScanner()
    var heldBody: HeldBody?
    /// A placeholder stands where it must not: nothing more is sent.
    var isRefused = false
    /// Hides the secret in the body of the response.
    var mask: SecretMask?
    var answer: RenewingAnswer?

    init(index: PlaceholderIndex, secrets: Secrets? = nil) {
        self.index = index
        self.secrets = secrets
    }
}

extension Fetch {
    /// What the request needs before a connection is asked for. Nil: nothing.
    func prepareSubstitution() -> CredentialHindrance? {
        guard snapshot.credentials.hasPlaceholders else { return nil }
        guard let use = request.placeholderUse, let credential = request.credential else {
            if request.hasBody { substitution = Substitution(index: worker.shared.placeholders.index) }
            return nil
        }
        guard let version = snapshot.secrets.version(of: credential.rule.name) else {
            return .refusal(.credentialUnavailable)
        }
        substitution = Substitution(
            index: worker.shared.placeholders.index,
            secrets: Substitution.Secrets(
                secret: version[.token], use: use, placeholder: use.placeholder,
                renewals: credential.rule.means.placeholderPlaces?.renewals ?? []))
        return nil
    }

    // MARK: the request

    /// Puts the secret where the placeholder stands.
    func substitute(in outgoing: inout OutgoingRequest) {
        guard let secrets = substitution?.secrets else { return }
        switch secrets.use?.change(to: secrets.secret) {
        case .authorization(let value): outgoing.set(.authorization, value.bytes)
        case .field(let name, let value):
            let known = FieldName(spelling: name)
            known == .other ? outgoing.set(spelling: name, value.bytes) : outgoing.set(known, value.bytes)
        case .target(let target): outgoing.setTarget(target.bytes)
        case nil: break
        }
        // The secret is looked for in what comes back: as it is, and whole.
        outgoing.set(.acceptEncoding, Array("identity".utf8))
        outgoing.remove(.range)
        outgoing.remove(.ifRange)
        worker.counters.add(.placeholdersReplaced)
        Diagnostics.debug(
            .authentication,
            "credential \(secrets.placeholder.credential): sent with \(subject) for the placeholder \(secrets.placeholder.id)"
        )
    }

    /// Keeps the body until it is whole if a credential lists members of such bodies. Returns false if the head can go out now.
    func holdBodyForPlaceholders() -> Bool {
        guard substitution != nil, substitution?.secrets == nil, substitution?.index.isEmpty == false else {
            return false
        }
        let type = request.fields.first(.contentType)
        for credential in snapshot.credentials.placeholders(
            for: request.access, provesOrigin: terms.tls.provesOrigin)
        {
            guard let places = credential.rule.means.placeholderPlaces, !request.fields.contains(.contentEncoding),
                let syntax = PlaceholderBody.syntax(type: type, places)
            else { continue }
            substitution?.heldBody = Substitution.HeldBody(
                syntax: syntax, places: places, credential: credential.rule.name)
            return true
        }
        return false
    }

    /// Takes a piece of a body that is kept. Returns false if it is not kept.
    func takeHeldBody(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard substitution?.heldBody != nil else { return false }
        unsafe substitution?.heldBody?.bytes.append(contentsOf: bytes)
        if let count = substitution?.heldBody?.bytes.count, count > PlaceholderBody.bytesMax {
            // Too long to be kept. A placeholder in it is misplaced.
            releaseHeldBody(nil)
        }
        return true
    }

    /// The body that was kept is whole. Returns false if the request is refused.
    func endHeldBody() -> Bool {
        guard let held = substitution?.heldBody, let index = substitution?.index else { return !bodyIsRefused }
        do throws(PlaceholderFault) {
            let found = try PlaceholderBody(
                held.bytes, held.syntax, held.places, credential: held.credential, index, now: worker.wallTime)
            guard let found else {
                releaseHeldBody(nil)
                return true
            }
            guard let version = snapshot.secrets.version(of: held.credential) else {
                refuseBody(.credentialUnavailable, nil)
                return false
            }
            substitution?.secrets = Substitution.Secrets(
                secret: version[.token], use: nil, placeholder: found.placeholder, renewals: held.places.renewals)
            releaseHeldBody(found.replacing(by: version[.token]))
            return true
        } catch {
            noteFault(error)
            return false
        }
    }

    /// Sends the head, and the body that was kept, or another in its place.
    private func releaseHeldBody(_ replacement: [UInt8]?) {
        guard let held = substitution?.heldBody?.bytes else { return }
        substitution?.heldBody = nil
        guard sendHead(replacement.map { .replaced(count: $0.count) } ?? .own) else { return }
        let body = replacement ?? held
        guard !body.isEmpty else { return }
        if replacement != nil {
            _ = unsafe body.withUnsafeBytes { unsafe sendContent($0) }
        } else {
            _ = unsafe body.withUnsafeBytes { unsafe sendBody($0) }
        }
    }

    /// Looks for placeholders in a piece of the body. Returns false if there is one: the piece is not sent.
    func examineBody(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let index = substitution?.index, !index.isEmpty else { return true }
        guard !bodyIsRefused else { return false }
        var offset = 0
        let span = unsafe bytes.bindMemory(to: UInt8.self)
        guard let position = unsafe substitution?.scanner.next(in: span.span, from: &offset, index) else { return true }
        noteFault(.misplaced(index.placeholders[position], place: "the body"))
        return false
    }

    var bodyIsRefused: Bool { substitution?.isRefused == true }

    private func noteFault(_ fault: PlaceholderFault) {
        worker.notePlaceholderFault(fault, request)
        refuseBody(.credentialMisplaced, Denial(reason: .credential, text: fault.text))
    }

    /// Ends the fetch in the next turn: the client's connection is in the middle of giving the body.
    private func refuseBody(_ refusal: Refusal, _ denial: Denial?) {
        substitution?.isRefused = true
        guard let id else { return }
        worker.loop.afterTurn { [worker] in
            guard let fetch = worker.fetches[id], !fetch.isIn(.finished) else { return }
            if let denial { fetch.notify { $0.note(denial) } }
            fetch.turn { fetch.feed(fetch.isIn(.asked) ? .notAnswered(refusal) : .brokeOff) }
        }
    }

    // MARK: the response

    /// The bytes of a head without the secret.
    func maskedHead(_ bytes: [UInt8]) -> [UInt8] {
        guard let secrets = substitution?.secrets else { return bytes }
        // What is stored is for other jobs as well: it shows no placeholder.
        var mask = secrets.mask(showsPlaceholder: false)
        return mask.apply(to: bytes)
    }

    /// Whether a secret could be in the body without being seen.
    func hidesSecret(_ response: ReceivedResponse) -> Bool {
        guard substitution?.secrets != nil, incoming.body.missing != 0 else { return false }
        if response.fields.all(.contentEncoding).contains(where: { !equalsIgnoringCase($0, "identity") }) {
            return true
        }
        return renewsSecrets(response)
            && (MemberSyntax(type: response.fields.first(.contentType)) == nil
                || incoming.body.missing ?? 0 > UInt64(RenewedSecrets.bytesMax))
    }

    /// Whether the answer has new secrets: those of errors have none (RFC 6749 §5.2).
    func renewsSecrets(_ response: ReceivedResponse) -> Bool {
        substitution?.secrets?.renewals.isEmpty == false && (200..<300).contains(response.status)
    }

    /// Prepares for the body, once it is known where it goes.
    func maskBody(of response: ReceivedResponse) {
        guard let secrets = substitution?.secrets else { return }
        if renewsSecrets(response), let syntax = MemberSyntax(type: response.fields.first(.contentType)) {
            substitution?.answer = Substitution.RenewingAnswer(
                syntax: syntax, hasLength: incoming.body.missing != nil)
        }
        switch sink {
        case .pass: substitution?.mask = secrets.mask(showsPlaceholder: true)
        case .store, .fill: substitution?.mask = secrets.mask(showsPlaceholder: false)
        case .none, .discard: break
        }
    }

    /// Passes content to the sink, without the secret.
    func fillMasked(_ bytes: UnsafeRawBufferPointer, isAll: Bool) {
        if let count = substitution?.answer?.bytes.count {
            guard count + bytes.count <= RenewedSecrets.bytesMax else { return feed(.brokeOff) }
            unsafe substitution?.answer?.bytes.append(contentsOf: bytes)
            return
        }
        guard substitution?.mask != nil else { return unsafe fillSink(bytes, isAll: isAll) }
        let masked = unsafe substitution?.mask?.take(Array(bytes)) ?? []
        if !masked.isEmpty { unsafe masked.withUnsafeBytes { unsafe fillSink($0, isAll: isAll) } }
    }

    /// Passes on what was kept. Returns false if nothing of it may be passed on.
    func flushMask() -> Bool {
        if let answer = substitution?.answer.take() {
            guard let body = renew(answer) else { return false }
            unsafe body.withUnsafeBytes { unsafe fillMasked($0, isAll: true) }
        }
        guard let rest = substitution?.mask?.finish(), !rest.isEmpty else { return true }
        unsafe rest.withUnsafeBytes { unsafe fillSink($0, isAll: true) }
        return true
    }

    /// Takes the new secrets out of an answer. Returns what the client gets in its place; nil if that cannot be made.
    private func renew(_ answer: Substitution.RenewingAnswer) -> [UInt8]? {
        guard let secrets = substitution?.secrets else { return nil }
        let name = secrets.placeholder.credential
        do {
            let renewed = try RenewedSecrets(answer.bytes, answer.syntax, secrets.renewals)
            let placeholders = try renewed.renewals.map { try placeholder(for: $0, like: secrets.placeholder) }
            var body = try renewed.body(with: placeholders, keepingLength: answer.hasLength)
            for (renewal, placeholder) in zip(renewed.renewals, placeholders) {
                var mask = SecretMask(renewal.secret, standIn: placeholder)
                body = mask.apply(to: body)
                guard snapshot.secrets.replace(.token, of: renewal.credential, by: renewal.secret) else { continue }
                worker.counters.add(.placeholdersRenewed)
                Diagnostics.info("credential \(renewal.credential): \(request.origin) has renewed its secret")
            }
            return body
        } catch let fault as RenewedSecrets.Fault {
            Diagnostics.error("credential \(name): the answer of \(request.origin) is not passed on: \(fault.text)")
        } catch {
            Diagnostics.error(
                "credential \(name): the answer of \(request.origin) is not passed on: no more placeholders can be issued"
            )
        }
        return nil
    }

    /// A placeholder for a new secret, for the job that asked.
    private func placeholder(
        for renewal: RenewedSecrets.Renewal, like old: Placeholder
    ) throws(PlaceholderBook.Failure) -> [UInt8] {
        let rule = snapshot.configuration.credentials.first { $0.name == renewal.credential }
        return try worker.shared.placeholders.issue(
            renewal.credential, like: renewal.secret, prefix: rule?.means.placeholderPlaces?.prefix, job: old.job,
            lifetime: old.endsAt.map { $0 - worker.wallTime }, now: worker.wallTime
        ).text
    }
}

extension Substitution.Secrets {
    fileprivate func mask(showsPlaceholder: Bool) -> SecretMask {
        use?.mask(secret, showsPlaceholder: showsPlaceholder)
            ?? SecretMask(secret, standIn: showsPlaceholder ? placeholder.text : nil)
    }
}

extension Worker {
    /// Counts and logs a request with a placeholder that is not replaced, or without the one that it should have.
    func notePlaceholderFault(_ fault: PlaceholderFault, _ request: OwnedRequest) {
        counters.add(.placeholdersMisplaced)
        let client = request.access.client.map { "\($0)" } ?? "a client"
        Diagnostics.warning("\(client): \(request.access.methodText) \(request.origin): \(fault.text)")
    }
}
