//go:build unix

package pgtest

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// oldest is the oldest major version that the store supports.
const oldest = 15

// supervise runs a server until the pipe on its standard input closes, which the
// system does when this process ends, and then removes the server's folder. The
// server's settings trade durability, which a test's database does not need, for
// speed.
const supervise = `
"$1/initdb" -D "$2/data" -U postgres -A trust -E UTF8 --locale=C --no-sync >"$2/log" 2>&1 || exit 1
"$1/postgres" -D "$2/data" -k "$2" -c listen_addresses='' -c fsync=off -c synchronous_commit=off \
	-c full_page_writes=off -c max_connections=300 -c shared_buffers=64MB -c timezone=Europe/Vienna \
	</dev/null >>"$2/log" 2>&1 &
server=$!
cat >/dev/null
kill -INT $server
wait $server
rm -rf "$2"
`

// start starts a temporary server and waits until it answers.
func start() (string, error) {
	binaries, err := find()
	if err != nil {
		return "", err
	}
	folder, err := os.MkdirTemp("", "pgtest-")
	if err != nil {
		return "", fmt.Errorf("pgtest: %w", err)
	}
	command := exec.Command("/bin/sh", "-c", supervise, "sh", binaries, folder)
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	command.Dir = folder
	if os.Geteuid() == 0 {
		if err := unprivileged(command, folder); err != nil {
			return "", err
		}
	}
	if command.Stdin, err = lifeline(); err != nil {
		return "", fmt.Errorf("pgtest: %w", err)
	}
	if err := command.Start(); err != nil {
		return "", fmt.Errorf("pgtest: start the server: %w", err)
	}
	at := url.URL{Scheme: "postgres", User: url.User("postgres"), Path: "/postgres"}
	at.RawQuery = url.Values{"host": {folder}, "sslmode": {"disable"}}.Encode()
	if err := answers(at.String()); err != nil {
		log, _ := os.ReadFile(filepath.Join(folder, "log"))
		return "", fmt.Errorf("pgtest: the server does not answer: %w\n%s", err, log)
	}
	return at.String(), nil
}

// lifeline is the end for reading of a pipe whose other end is open as long as this
// process lives. That end is a bare descriptor: an os.File that nobody refers to
// would be closed.
func lifeline() (*os.File, error) {
	var ends [2]int
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := syscall.Pipe(ends[:]); err != nil {
		return nil, err
	}
	syscall.CloseOnExec(ends[0])
	syscall.CloseOnExec(ends[1])
	return os.NewFile(uintptr(ends[0]), "lifeline"), nil
}

// unprivileged makes a command run as a user other than root, because PostgreSQL
// refuses to run as root.
func unprivileged(command *exec.Cmd, folder string) error {
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, _ := strconv.Atoi(found.Uid)
		gid, _ := strconv.Atoi(found.Gid)
		if err := os.Chown(folder, uid, gid); err != nil {
			return fmt.Errorf("pgtest: %w", err)
		}
		command.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		return nil
	}
	return errors.New("pgtest: running as root and there is neither a user postgres nor a user nobody to run the server as")
}

// Program is the path of one of the programs that come with the server, such as pgbench.
func Program(name string) (string, error) {
	folder, err := find()
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("pgtest: PostgreSQL's %s is not with its server: %w", name, err)
	}
	return path, nil
}

// find returns the folder of the newest server binaries.
func find() (string, error) {
	newest, folder := 0, ""
	candidates, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	for _, path := range candidates {
		version, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
		if version > newest {
			newest, folder = version, filepath.Dir(path)
		}
	}
	if newest >= oldest {
		return folder, nil
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		return filepath.Dir(path), nil
	}
	return "", fmt.Errorf("pgtest: no PostgreSQL %d or newer found: install it (Debian, Ubuntu: apt-get install -y postgresql; "+
		"macOS: brew install postgresql) or name a server in %s", oldest, environment)
}

func answers(at string) error {
	db, err := sql.Open("postgres", at)
	if err != nil {
		return err
	}
	defer db.Close()
	for range 600 {
		if err = db.Ping(); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return err
}
