"""What the tests of nginx-lint need beside the shell: test configurations for this machine, a real
nginx to compare with, and somebody who does what the findings say.

    adapt FROM TO         copies configurations so that nginx -t takes them, line by line the same
    mend CONF TSV         applies the fixes in TSV (nginx-lint --tsv) to the files
    locations DIR LINT    random locations: asks a real nginx and nginx-lint who serves a path
"""

import os
import random
import re
import shutil
import socket
import subprocess
import sys
import time

TEMP_PATHS = " ".join(f"{name}_temp_path temp/{name};"
                      for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))


def adapt(source, target):
    shutil.copytree(source, target)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-keyout", f"{target}/tls.key",
                    "-out", f"{target}/tls.crt"], check=True, capture_output=True)
    os.makedirs(f"{target}/run/temp")
    for folder, _, names in os.walk(target):
        if folder != target and "nginx.conf" in names:
            for name in ("tls.key", "tls.crt"):
                shutil.copy(f"{target}/{name}", folder)
        for name in names:
            path = os.path.join(folder, name)
            if name.startswith("tls.") or name.endswith(".expected"):
                continue
            with open(path, encoding="utf-8") as file:
                text = file.read()
            text = re.sub(r"(?m)^http *\{", r"\g<0> " + TEMP_PATHS, text)
            # Ports that an ordinary user may have, addresses of this machine.
            text = re.sub(r"(listen [^;]*?)\b(80|443)(?=[ ;])", r"\g<1>18\2", text)
            text = text.replace("203.0.113.5", "127.0.0.1")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)


def mend(main, tsv):
    """One round. Returns nothing; fails if a fix does not fit its place."""
    edits = {}
    with open(tsv, encoding="utf-8") as file:
        for line in file:
            how, place, fix = line.rstrip("\n").split("\t")[8:11]
            location = line.split("\t")[4]
            if how == "-" or not how:
                continue
            path, number = place.rsplit(":", 1)
            for one in fix.split(" \\n "):
                edits.setdefault((path, int(number)), []).append((how, one, location))
    for (path, number), todo in edits.items():
        with open(path, encoding="utf-8") as file:
            lines = file.read().split("\n")
        text = lines[number - 1]
        done = set()
        for how, fix, location in todo:
            # One directive may be in the way of several locations, and is mended once.
            once = (how, fix, location if how == "add" else "")
            if once in done:
                continue
            done.add(once)
            name = fix.split()[0].rstrip(";")
            if how == "add":
                # Behind the brace of the block: of several on the line, of that with these words.
                words = location.split(" in ")[-1].split()[1:]
                start = text.find(words[-1]) if words and words[-1] in text else 0
                at = text.index("{", start + len(words[-1] if words else "") if start else start)
                text = f"{text[:at + 1]} {fix}{text[at + 1:]}"
            else:
                new, count = re.subn(rf"(?<![\w/-]){re.escape(name)}\s[^;]*;",
                                     lambda _, text=fix if how == "replace" else "": text, text, count=1)
                if count == 0 and fix not in text:
                    sys.exit(f"{path}:{number}: no {name} to {how}: {text}")
                text = new
        lines[number - 1] = text
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines))


# --- who serves a path ---

PARTS = ["a", "b", "ab", "a.b", "v1", "x%20y", "A"]
PATTERNS = [r"\.b$", r"^/a", r"/b/", r"^/(a|v1)/[ab]+$", r"(?i)^/A", r"v\d", r"^/a(?!b)", r"b$"]


def path_of(rng):
    path = "/" + "/".join(rng.choice(PARTS) for _ in range(rng.randint(0, 3)))
    return path + rng.choice(["", "", "/", "//", "/./a", "/../b", "?q=/v1", "/a/..", "%2Fb"])


def locations(rng, depth, prefix, names):
    """Text of some locations; each answers with its number."""
    text = ""
    seen = set()
    for _ in range(rng.randint(1, 4)):
        # In a regex location nginx takes regex locations only.
        kind = rng.choice(["", "", "", "=", "^~", "~", "~*"] if prefix else ["~", "~*"])
        if kind.startswith("~"):
            path = rng.choice(PATTERNS)
        else:
            path = prefix + rng.choice(["a", "b", "a/", "ab", "v1", "a/b", "", "A"])
        if (kind.replace("^~", ""), path) in seen:
            continue
        seen.add((kind.replace("^~", ""), path))
        number = len(names)
        names.append(f"location {kind + ' ' if kind else ''}{path}")
        inner = ""
        if depth < 2 and kind != "=" and rng.random() < 0.4:
            inner = locations(rng, depth + 1, "" if kind.startswith("~") else path, names)
        text += f'location {kind} "{path}" {{ add_header N {number}; return 200; {inner} }}\n'
    return text


def ask(path):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect("http.sock")
        connection.sendall(f"GET {path} HTTP/1.0\r\nHost: x\r\n\r\n".encode())
        reply = b""
        while block := connection.recv(65536):
            reply += block
    found = re.search(rb"^N: (\d+)", reply, re.M)
    return reply.split()[1].decode(), int(found[1]) if found else None


def compare_locations(folder, lint):
    os.chdir(folder)
    os.makedirs("temp", exist_ok=True)
    compared = 0
    for seed in range(8):
        rng = random.Random(seed)
        names = []
        text = locations(rng, 0, "/", names)
        with open("nginx.conf", "w", encoding="utf-8") as file:
            file.write(f"daemon off; pid nginx.pid; error_log error.log; worker_processes 1;\n"
                       f"events {{}}\nhttp {{ {TEMP_PATHS} access_log off;\n"
                       f"server {{ listen unix:http.sock;\n{text}}} }}\n")
        server = subprocess.Popen(["nginx", "-p", f"{folder}/", "-e", "error.log", "-c", "nginx.conf"],
                                  stderr=subprocess.PIPE)
        try:
            while not os.path.exists("nginx.pid") or not os.path.exists("http.sock"):
                if server.poll() is not None:
                    sys.exit(f"seed {seed}: {server.stderr.read().decode()}\n{text}")
                time.sleep(0.01)
            for _ in range(12):
                path = path_of(rng)
                status, number = ask(path)
                run = subprocess.run([lint, "--uri", path, "nginx.conf"], capture_output=True, text=True, check=False)
                first = (run.stdout.split("\n") or [""])[0]
                if status == "400":
                    want = "400"
                    got = "400" if run.returncode == 2 and "400" in run.stderr else first
                elif number is None:
                    want = "no location"
                    got = "no location" if "has no location for" in first else first
                else:
                    want = names[number]
                    match = re.search(r" is served by (location .*) of _:http\.sock", first.replace("unix:http.sock", "http.sock"))
                    got = match[1] if match else first + run.stderr
                if got != want:
                    sys.exit(f"seed {seed}, {path}: nginx says {want}, nginx-lint {got}\n{text}")
                compared += 1
        finally:
            server.terminate()
            server.wait()
            if os.path.exists("http.sock"):
                os.unlink("http.sock")
    print(f"{compared} paths")


if __name__ == "__main__":
    {"adapt": adapt, "mend": mend, "locations": compare_locations}[sys.argv[1]](*sys.argv[2:])
