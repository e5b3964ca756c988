package import Rules

/// The Basic scheme (RFC 7617): a name and a password with every request, checked against an htpasswd file, and against a directory if the name is
/// not in the file.
package struct Basic: AuthenticationScheme {
    private let users: HtpasswdFile
    private let groups: GroupsFile
    private let challenge: [UInt8]
    private let directory: DirectoryTerms?

    /// A directory, as far as this scheme has to know it.
    private struct DirectoryTerms: Sendable {
        let lifetime: Duration
        /// Tells one directory from another: what was remembered of one says nothing about another.
        let fingerprint: [UInt8]
    }

    package var name: AuthenticationSchemeName { .basic }
    package func challenges(at now: Duration, after failure: AuthenticationFailure?) -> [[UInt8]] { [challenge] }

    /// - Parameter directory: nil if all users are in the file.
    package init(
        realm: String, users: HtpasswdFile, groups: GroupsFile = GroupsFile(), directory: DirectorySettings? = nil
    ) {
        self.users = users
        self.groups = groups
        challenge = basicChallenge(realm: realm)
        self.directory = directory.map {
            DirectoryTerms(lifetime: $0.lifetime, fingerprint: Array("\($0)".utf8))
        }
    }

    package func examine(
        _ attempt: AuthenticationAttempt, _ memory: inout VerifiedCredentials
    ) -> AuthenticationStep? {
        guard let value = attempt.credentials, let credentials = BasicCredentials(fieldValue: value) else { return nil }
        let hash = users.hash(for: credentials.user)
        if hash == nil, let directory { return examine(credentials, directory, attempt, &memory) }
        switch memory.answer(for: credentials, storedAs: hash, client: attempt.client, now: attempt.now) {
        case .verified(let expiry): return .known(identity(credentials, until: expiry))
        case .refused: return .refused(.wrong)
        case .tooManyFailures: return .refused(.tooManyFailures)
        case .unknown: return .ask(.password(credentials, hash: hash))
        }
    }

    package func conclude(
        _ question: AuthenticationQuestion, _ answer: AuthenticationAnswer, _ attempt: AuthenticationAttempt,
        _ memory: inout VerifiedCredentials
    ) -> AuthenticationStep {
        switch (question, answer) {
        case (.password(let credentials, let hash), .password(let isRight)):
            // The password of nobody is never right, whatever the helper found.
            let isValid = isRight && hash != nil
            memory.record(
                credentials, storedAs: hash, isValid: isValid, client: attempt.client, now: attempt.now)
            return isValid ? .known(identity(credentials, until: memory.expiry(now: attempt.now))) : .refused(.wrong)
        case (.directory(let question), .directory(let answer)): return conclude(question, answer, attempt, &memory)
        default: preconditionFailure("Basic asks for passwords alone")
        }
    }

    private func identity(_ credentials: BasicCredentials, until expiry: Duration) -> Identity {
        Identity(
            name: credentials.user, scheme: .basic, groups: groups.groups(of: credentials.user), expiry: expiry)
    }

    // MARK: users of a directory

    /// The longest name that a directory is asked for, in bytes.
    private static let nameMax = 256

    private func examine(
        _ credentials: BasicCredentials, _ directory: DirectoryTerms, _ attempt: AuthenticationAttempt,
        _ memory: inout VerifiedCredentials
    ) -> AuthenticationStep {
        let counted = Basic.countedName(credentials.user)
        if memory.wait(of: attempt.client, as: counted, now: attempt.now) != nil { return .refused(.tooManyFailures) }
        // A bind with an empty password succeeds without proving anything (RFC 4513 §5.1.2).
        guard !credentials.password.isEmpty, (1...Basic.nameMax).contains(credentials.user.utf8.count) else {
            memory.failed(attempt.client, as: counted, now: attempt.now)
            return .refused(.wrong)
        }
        let key = memory.directoryKey(credentials, directory.fingerprint)
        if let (user, expiry) = memory.directoryUser(key, now: attempt.now) {
            return isInFile(user.name) ? .refused(.wrong) : .known(identity(user, until: expiry))
        }
        if memory.isRefusedByDirectory(key, now: attempt.now) { return .refused(.wrong) }
        return .ask(.directory(DirectoryQuestion(credentials: credentials, key: key)))
    }

    private func conclude(
        _ question: DirectoryQuestion, _ answer: DirectoryAnswer, _ attempt: AuthenticationAttempt,
        _ memory: inout VerifiedCredentials
    ) -> AuthenticationStep {
        let counted = Basic.countedName(question.credentials.user)
        switch answer {
        case .accepted(let user) where !isInFile(user.name):
            guard let directory else { preconditionFailure("a directory was asked") }
            memory.rememberDirectoryUser(user, question.key, for: directory.lifetime, now: attempt.now)
            memory.succeeded(attempt.client, as: counted, now: attempt.now)
            return .known(identity(user, until: attempt.now + directory.lifetime))
        // Another spelling of a name in the file would make somebody else of its user.
        case .accepted, .refused:
            memory.rememberDirectoryRefusal(question.key, now: attempt.now)
            memory.failed(attempt.client, as: counted, now: attempt.now)
            return .refused(.wrong)
        case .unavailable: return .refused(.directoryUnavailable)
        }
    }

    private func isInFile(_ name: String) -> Bool { users.hash(for: name) != nil }

    private func identity(_ user: DirectoryUser, until expiry: Duration) -> Identity {
        let groups = Set(user.groups + groups.groups(of: user.name)).sorted()
        return Identity(name: user.name, scheme: .basic, groups: groups, expiry: expiry)
    }

    /// The name under which failures count. Directories compare names without regard to case and to the number of spaces, so guesses under all
    /// spellings of a name count together.
    private static func countedName(_ name: String) -> String { name.lowercased().filter { $0 != " " } }
}
