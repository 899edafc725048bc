# knee agents on Nomad (1.5 or later): one agent on each of four nodes.
#
#   nomad var put -in hcl nomad/jobs/knee-agent @agent.nv.hcl
#   nomad job run knee-agent.nomad.hcl
#   nomad job stop knee-agent
#
# The login comes from a Nomad variable, so that it stands neither in this file nor in arguments. The
# file agent.nv.hcl (chmod 600) has the names that agent.env.example explains:
#
#   items {
#     NATS_URL   = "nats://nats.example:4222"
#     NATS_TOKEN = "..."
#   }

variable "agents" {
  type        = number
  default     = 4
  description = "Number of agents"
}

variable "allow_target" {
  type        = string
  default     = "10.0.0.0/8"
  description = "Targets that experiments may load, as a CIDR"
}

job "knee-agent" {
  datacenters = ["*"]

  # A batch job ends; Nomad does not move it to another node while a trial runs.
  type = "batch"

  group "agents" {
    count = var.agents

    # One agent per node: two on one node would slow each other, and the report would show it.
    constraint {
      operator = "distinct_hosts"
      value    = "true"
    }

    # On the same node a few times, and then not elsewhere.
    restart {
      attempts = 3
      interval = "10m"
      delay    = "5s"
      mode     = "fail"
    }

    reschedule {
      attempts  = 0
      unlimited = false
    }

    network {
      mode = "host"
    }

    task "agent" {
      # exec runs the binary isolated, as an unprivileged user.
      driver = "exec"
      user   = "nobody"

      # SIGTERM ends the agent; a trial in hand is INVALID then, and names it.
      kill_signal  = "SIGTERM"
      kill_timeout = "60s"

      # knee is installed on the nodes; an artifact block may fetch it instead.
      config {
        command = "/usr/local/bin/knee"
        args = [
          "agent",
          "--name", "agent-${NOMAD_ALLOC_INDEX}",
          "--labels", "dc=${node.datacenter}",
          "--allow-target", var.allow_target,
        ]
      }

      # NATS_URL and the login as environment, in the directory of secrets, which is kept in memory.
      template {
        destination = "${NOMAD_SECRETS_DIR}/nats.env"
        env         = true
        change_mode = "noop"
        data        = <<-EOT
          {{ with nomadVar "nomad/jobs/knee-agent" }}{{ range .Tuples }}
          {{ .K }}={{ .V | toJSON }}
          {{ end }}{{ end }}
        EOT
      }

      env {
        XDG_STATE_HOME = "${NOMAD_ALLOC_DIR}/data"
        XDG_DATA_HOME  = "${NOMAD_ALLOC_DIR}/data"
      }

      # Whole processors, which no other task shares.
      resources {
        cores  = 2
        memory = 1024
      }
    }
  }
}
