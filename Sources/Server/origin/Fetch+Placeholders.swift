import Access
import Accounts
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

    let index: PlaceholderIndex
    var secrets: Secrets?
    /// Looks for placeholders in a body that is sent while it comes.
    var scanner = PlaceholderScanner()
    /// A placeholder stands where it must not: nothing more is sent.
    var isRefused = false

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
        worker.debug(
            .authentication, request.id,
            "credential \(secrets.placeholder.credential): sent with \(subject) for the placeholder \(secrets.placeholder.id)"
        )
    }

    /// The members of the body of which one may be a placeholder, and those that must not be anything else. Nil: the body need not be kept for that.
    func listedMembers() -> KeptBody.Members? {
        guard snapshot.credentials.hasPlaceholders else { return nil }
        // With a placeholder in the head there is none to replace in the body.
        let mayReplace =
            substitution?.secrets == nil && substitution?.index.isEmpty == false
            && !request.fields.contains(.contentEncoding)
        let types = request.fields.all(.contentType)
        var listed: KeptBody.Members.Listed?
        if mayReplace {
            let candidates = snapshot.credentials.placeholders(
                for: request.access, provesOrigin: terms.tls.provesOrigin)
            listed =
                candidates.lazy.compactMap { credential in
                    guard let places = credential.rule.means.placeholderPlaces,
                        let syntax = PlaceholderBody.syntax(types: types, places)
                    else { return nil }
                    return KeptBody.Members.Listed(syntax: syntax, places: places, credential: credential.rule.name)
                }.first
        }
        return KeptBody.Members(listed, snapshot.credentials.bodyRequirements(for: request.access, types: types))
    }

    /// Puts the secret in the place of a placeholder in a body that is whole. Throws if there is a placeholder that must not be there.
    func replacePlaceholder(in kept: KeptBody) throws(PlaceholderFault) -> CredentialHindrance? {
        guard let index = substitution?.index else { return nil }
        let requirements = kept.members?.requirements ?? []
        guard let members = kept.members?.listed, substitution?.secrets == nil else {
            var (scanner, offset) = (PlaceholderScanner(), 0)
            let bytes = kept.bytes
            if let position = scanner.next(in: bytes.span, from: &offset, index) {
                throw .misplaced(index.placeholders[position], place: "the body")
            }
            for requirement in requirements { try requirement.check(bytes, beside: nil) }
            return nil
        }
        let found = try PlaceholderBody(
            kept.bytes, members.syntax, members.places, credential: members.credential, index, now: worker.moment)
        for requirement in requirements { try requirement.check(kept.bytes, beside: found?.placeholder) }
        guard let found else { return nil }
        guard let version = snapshot.secrets.version(of: members.credential) else {
            return .refusal(.credentialUnavailable)
        }
        substitution?.secrets = Substitution.Secrets(
            secret: version[.token], use: nil, placeholder: found.placeholder, renewals: members.places.renewals)
        kept.replacement = found.replacing(by: version[.token])
        return nil
    }

    /// Looks for placeholders in a piece of the body. Returns false if there is one: the piece is not sent.
    func examineBody(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let index = substitution?.index, !index.isEmpty else { return true }
        guard !bodyIsRefused else { return false }
        var offset = 0
        let span = unsafe bytes.bindMemory(to: UInt8.self)
        guard let position = unsafe substitution?.scanner.next(in: span.span, from: &offset, index) else { return true }
        refuseBody(.misplaced(index.placeholders[position], place: "the body"))
        return false
    }

    var bodyIsRefused: Bool { substitution?.isRefused == true }

    /// Ends the fetch in the next turn: the client's connection is in the middle of giving the body.
    private func refuseBody(_ fault: PlaceholderFault) {
        worker.notePlaceholderFault(fault, request)
        substitution?.isRefused = true
        guard let id else { return }
        worker.loop.afterTurn { [worker] in
            guard let fetch = worker.fetches[id], !fetch.isIn(.finished) else { return }
            fetch.notify { $0.note(Denial(reason: .credential, text: fault.text)) }
            fetch.turn { fetch.feed(fetch.isIn(.asked) ? .notAnswered(.credentialMisplaced) : .brokeOff) }
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
    ///
    /// - Parameter length: that of the body; nil if the framing does not tell.
    func hidesSecret(_ response: ReceivedResponse, _ length: UInt64?) -> Bool {
        guard substitution?.secrets != nil, length != 0 else { return false }
        if response.fields.all(.contentEncoding).contains(where: { !equalsIgnoringCase($0, "identity") }) {
            return true
        }
        return renewsSecrets(response)
            && (MemberSyntax(type: response.fields.first(.contentType)) == nil
                || length ?? 0 > UInt64(RenewedSecrets.bytesMax))
    }

    /// Whether the answer has new secrets: those of errors have none (RFC 6749 §5.2).
    func renewsSecrets(_ response: ReceivedResponse) -> Bool {
        substitution?.secrets?.renewals.isEmpty == false && StatusClass(response.status) == .successful
    }

    /// Adds the filters of the body, once it is known where it goes.
    func maskBody(of response: ReceivedResponse, _ length: UInt64?) {
        guard let secrets = substitution?.secrets else { return }
        if renewsSecrets(response), let syntax = MemberSyntax(type: response.fields.first(.contentType)) {
            add(RenewalFilter { [unowned self] in renew($0, syntax, keepingLength: length != nil, secrets) })
        }
        switch sink {
        case .pass: add(SecretFilter(secrets.mask(showsPlaceholder: true)))
        // What is stored is for other jobs as well.
        case .store, .fill: add(SecretFilter(secrets.mask(showsPlaceholder: false)))
        case .none, .discard: break
        }
    }

    private func add(_ filter: any ContentFilter) { filters = (filters ?? ContentFilters()).appending(filter) }

    /// Takes the new secrets out of an answer. Returns what the client gets in its place; nil if that cannot be made.
    private func renew(
        _ answer: [UInt8], _ syntax: MemberSyntax, keepingLength: Bool, _ secrets: Substitution.Secrets
    ) -> [UInt8]? {
        let name = secrets.placeholder.credential
        do {
            let renewed = try RenewedSecrets(answer, syntax, secrets.renewals)
            let placeholders = try renewed.renewals.map { try placeholder(for: $0, like: secrets.placeholder) }
            var body = try renewed.body(with: placeholders, keepingLength: keepingLength)
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
            lifetime: old.endsAt?.left(at: worker.moment), now: worker.moment
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
