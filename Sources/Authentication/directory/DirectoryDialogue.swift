package import Credentials

/// What is asked of one directory to find out whether a password is right: a machine without connections.
///
/// The driver carries out each `Action` and reports its `DirectoryReply`, until the action is `finish`. With an account for searches the order is:
/// bind as the account, search for the user, search for its groups, bind as the user. Without one the user's own bind comes as early as possible.
/// Nothing that was found counts before the user's bind has succeeded.
package struct DirectoryDialogue: Sendable {
    package enum Action: Sendable, Equatable {
        /// A simple bind (RFC 4513 §5.1.3). The password is never empty.
        case bind(name: String, password: Secret)
        case search(DirectorySearch)
        case finish(Outcome)
    }

    package enum Outcome: Sendable, Equatable {
        case accepted(DirectoryUser)
        case refused(DirectoryRefusal)
        /// This directory cannot tell. Another one may.
        case failed(DirectoryFault)
    }

    private enum State: Sendable, Equatable {
        case ready
        case bindingAccount
        /// - Parameter isProven: whether the user's bind has succeeded.
        case findingUser(isProven: Bool)
        case findingGroups(Entry, isProven: Bool)
        /// - Parameters:
        ///   - entry: nil if the user's name follows from the settings, and its entry is read afterwards.
        ///   - groups: nil if they have not been asked for.
        case bindingUser(entry: Entry?, groups: [String]?)
        case finished
    }

    /// What of a user's entry counts.
    private struct Entry: Sendable, Equatable {
        let dn: String
        let name: String
        let groups: [String]
    }

    private let settings: DirectorySettings
    private let user: String
    private let password: Secret
    private let accountPassword: Secret?
    private var state = State.ready

    /// The most groups of one user. Beyond, nobody could say which of them are missing.
    package static let groupsMax = 1000

    /// - Parameters:
    ///   - user: what the client says, not empty.
    ///   - password: not empty. A bind without one succeeds without proving anything (RFC 4513 §5.1.2).
    ///   - accountPassword: that of `bind_dn`.
    package init(_ settings: DirectorySettings, user: String, password: Secret, accountPassword: Secret?) {
        precondition(!user.isEmpty && !password.bytes.isEmpty, "an empty password proves nothing")
        precondition(
            settings.accountName == nil || accountPassword?.bytes.isEmpty == false, "an account has a password")
        self.settings = settings
        self.user = user
        self.password = password
        self.accountPassword = accountPassword
    }

    package mutating func start() -> Action {
        precondition(state == .ready, "a dialogue starts once")
        if let name = settings.accountName, let accountPassword {
            state = .bindingAccount
            return .bind(name: name, password: accountPassword)
        }
        return settings.userName == nil ? findUser(isProven: false) : bindUser(entry: nil, groups: nil)
    }

    package mutating func on(_ reply: DirectoryReply) -> Action {
        switch state {
        case .bindingAccount:
            guard reply.code == .success else { return finish(.failed(.account(reply.code))) }
            return findUser(isProven: false)
        case .findingUser(let isProven): return foundUser(reply, isProven: isProven)
        case .findingGroups(let entry, let isProven): return foundGroups(reply, of: entry, isProven: isProven)
        case .bindingUser(let entry, let groups): return boundUser(reply, entry: entry, groups: groups)
        case .ready, .finished: preconditionFailure("nothing was asked")
        }
    }

    private mutating func finish(_ outcome: Outcome) -> Action {
        state = .finished
        return .finish(outcome)
    }

    // MARK: the user's entry

    private mutating func findUser(isProven: Bool) -> Action {
        state = .findingUser(isProven: isProven)
        let attributes = [settings.nameAttribute] + (settings.memberAttribute.map { [$0] } ?? [])
        if let name = settings.userName {
            return .search(
                DirectorySearch(
                    base: name.filled(user: user), scope: .base, filter: "(objectClass=*)", attributes: attributes,
                    countMax: 1))
        }
        guard let base = settings.usersBase, let filter = settings.usersFilter else {
            preconditionFailure("users are searched for, or their names are known")
        }
        // Two are enough to see that there is more than one.
        return .search(
            DirectorySearch(
                base: base, scope: .subtree, filter: filter.filled(user: user), attributes: attributes, countMax: 2))
    }

    private mutating func foundUser(_ reply: DirectoryReply, isProven: Bool) -> Action {
        switch reply.code {
        case .success, .sizeLimitExceeded: break
        // The name that was made up is no entry.
        case .noSuchObject where settings.userName != nil, .invalidNameSyntax where settings.userName != nil:
            return finish(.refused(.unknown))
        default: return finish(.failed(.userSearch(reply.code)))
        }
        guard reply.entries.count < 2, reply.code == .success else { return finish(.refused(.several)) }
        guard let found = reply.entries.first else { return finish(.refused(.unknown)) }
        guard let name = DirectoryDialogue.name(in: found, settings.nameAttribute) else {
            return finish(.refused(.nameless))
        }
        var groups: [String] = []
        for value in settings.memberAttribute.map(found.values) ?? [] {
            guard let group = String(validating: value, as: UTF8.self).flatMap(firstValue) else {
                return finish(.failed(.groupUnreadable))
            }
            groups.append(group)
        }
        let entry = Entry(dn: found.dn, name: name, groups: groups)
        // An account that searches sees the groups. A user without one sees what it may see, after its bind.
        if isProven || settings.accountName != nil { return findGroups(of: entry, isProven: isProven) }
        return bindUser(entry: entry, groups: nil)
    }

    /// The name as the directory writes it: many spellings of a name match one entry, and rules compare exactly.
    private static func name(in entry: DirectoryEntry, _ attribute: String) -> String? {
        let values = entry.values(of: attribute)
        guard values.count == 1, let name = String(validating: values[0], as: UTF8.self),
            (1...256).contains(name.utf8.count), name.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
        else { return nil }
        return name
    }

    // MARK: groups

    private mutating func findGroups(of entry: Entry, isProven: Bool) -> Action {
        guard let base = settings.groupsBase, let filter = settings.groupsFilter else {
            return goOn(entry, groups: entry.groups, isProven: isProven)
        }
        state = .findingGroups(entry, isProven: isProven)
        return .search(
            DirectorySearch(
                base: base, scope: .subtree, filter: filter.filled(user: entry.name, dn: entry.dn),
                attributes: [settings.groupAttribute], countMax: DirectoryDialogue.groupsMax))
    }

    private mutating func foundGroups(_ reply: DirectoryReply, of entry: Entry, isProven: Bool) -> Action {
        // A rule may refuse a group: whoever does not know all groups does not know what is allowed.
        guard reply.code != .sizeLimitExceeded else { return finish(.failed(.tooManyGroups)) }
        guard reply.code == .success else { return finish(.failed(.groupSearch(reply.code))) }
        var groups = entry.groups
        for found in reply.entries {
            let values = found.values(of: settings.groupAttribute)
            let names = values.compactMap { String(validating: $0, as: UTF8.self) }
            guard !names.isEmpty, names.count == values.count else { return finish(.failed(.groupUnreadable)) }
            groups += names
        }
        return goOn(entry, groups: groups, isProven: isProven)
    }

    private mutating func goOn(_ entry: Entry, groups: [String], isProven: Bool) -> Action {
        guard isProven else { return bindUser(entry: entry, groups: groups) }
        return finish(.accepted(DirectoryUser(name: entry.name, groups: Set(groups).sorted())))
    }

    // MARK: the user's bind

    private mutating func bindUser(entry: Entry?, groups: [String]?) -> Action {
        state = .bindingUser(entry: entry, groups: groups)
        guard let name = entry?.dn ?? settings.userName?.filled(user: user) else {
            preconditionFailure("a user without an entry has a name that follows from the settings")
        }
        return .bind(name: name, password: password)
    }

    private mutating func boundUser(_ reply: DirectoryReply, entry: Entry?, groups: [String]?) -> Action {
        switch reply.code {
        case .success: break
        case .invalidCredentials, .inappropriateAuthentication, .noSuchObject, .invalidNameSyntax,
            .insufficientAccessRights, .constraintViolation, .unwillingToPerform:
            return finish(.refused(.password(reply.code)))
        default: return finish(.failed(.userBind(reply.code)))
        }
        guard let entry else { return findUser(isProven: true) }
        guard let groups else { return findGroups(of: entry, isProven: true) }
        return goOn(entry, groups: groups, isProven: true)
    }
}

/// A search (RFC 4511 §4.5.1).
package struct DirectorySearch: Sendable, Equatable {
    package enum Scope: Sendable { case base, subtree }
    package let base: String
    package let scope: Scope
    package let filter: String
    package let attributes: [String]
    /// The size limit.
    package let countMax: Int
}

package struct DirectoryEntry: Sendable, Equatable {
    package let dn: String
    /// By their names in lower case.
    private let attributes: [String: [[UInt8]]]

    package init(dn: String, attributes: [String: [[UInt8]]]) {
        self.dn = dn
        self.attributes = Dictionary(
            attributes.map { ($0.key.lowercased(), $0.value) }, uniquingKeysWith: { $0 + $1 })
    }

    func values(of attribute: String) -> [[UInt8]] { attributes[attribute.lowercased()] ?? [] }
}

/// What a directory answered to a bind or a search.
package struct DirectoryReply: Sendable, Equatable {
    package let code: DirectoryCode
    /// Of a search.
    package let entries: [DirectoryEntry]

    package init(_ code: DirectoryCode, _ entries: [DirectoryEntry] = []) {
        self.code = code
        self.entries = entries
    }
}

/// A result code (RFC 4511 §4.1.9).
package struct DirectoryCode: Sendable, Hashable {
    package let number: Int

    package init(_ number: Int) { self.number = number }

    package static let success = DirectoryCode(0)
    package static let sizeLimitExceeded = DirectoryCode(4)
    package static let constraintViolation = DirectoryCode(19)
    package static let noSuchObject = DirectoryCode(32)
    package static let invalidNameSyntax = DirectoryCode(34)
    package static let inappropriateAuthentication = DirectoryCode(48)
    package static let invalidCredentials = DirectoryCode(49)
    package static let insufficientAccessRights = DirectoryCode(50)
    package static let busy = DirectoryCode(51)
    package static let unavailable = DirectoryCode(52)
    package static let unwillingToPerform = DirectoryCode(53)
}

/// A user whose password the directory has accepted.
package struct DirectoryUser: Sendable, Equatable {
    /// As the directory writes it.
    package let name: String
    /// Sorted, each once.
    package let groups: [String]

    package init(name: String, groups: [String]) {
        self.name = name
        self.groups = groups
    }
}

/// Why a directory does not accept a user.
package enum DirectoryRefusal: Sendable, Equatable {
    case unknown
    /// More than one entry matches.
    case several
    /// The entry does not have exactly one readable value of `users.name`.
    case nameless
    case password(DirectoryCode)

    package var text: String {
        switch self {
        case .unknown: "no entry matches"
        case .several: "more than one entry matches"
        case .nameless: "its entry does not show exactly one value of users.name"
        case .password(let code): "its bind is refused with result code \(code.number)"
        }
    }
}

/// Why a directory cannot tell.
package enum DirectoryFault: Sendable, Equatable {
    /// The connection, or TLS on it, failed, or an answer did not come in time.
    case connection(String)
    case account(DirectoryCode)
    case userSearch(DirectoryCode)
    case groupSearch(DirectoryCode)
    case userBind(DirectoryCode)
    case tooManyGroups
    case groupUnreadable

    package var text: String {
        switch self {
        case .connection(let text): text
        case .account(let code): "the bind of bind_dn is refused with result code \(code.number)"
        case .userSearch(let code): "the search for the user ended with result code \(code.number)"
        case .groupSearch(let code): "the search for groups ended with result code \(code.number)"
        case .userBind(let code): "the bind of the user ended with result code \(code.number)"
        case .tooManyGroups:
            "a user is in more than \(DirectoryDialogue.groupsMax) groups, or in more than the directory tells"
        case .groupUnreadable: "the name of a group cannot be read"
        }
    }

    /// Whether every other user would meet the same fault, so that the directory is avoided for a while. Nobody may bring that about by the name
    /// that it gives.
    package var isOfDirectory: Bool {
        switch self {
        case .connection, .account: true
        case .userSearch(let code), .groupSearch(let code), .userBind(let code): code == .busy || code == .unavailable
        case .tooManyGroups, .groupUnreadable: false
        }
    }
}
