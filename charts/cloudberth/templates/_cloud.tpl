{{/* The parts of the pod that one cloud needs. Each takes a dict: root (the chart), name (the cloud), several (whether there are others). */}}

{{- define "cloudberth.cloud.env" -}}
{{- $cloud := index .root.Values.clouds .name -}}
{{- $variables := index (include "cloudberth.variables" .root | fromYaml) .name -}}
{{- $urlKey := dig "secret" "keys" "apiUrl" "" $cloud -}}
{{- if $cloud.apiUrl }}
- name: {{ $variables.url }}
  value: {{ $cloud.apiUrl | quote }}
{{- else if $urlKey }}
- name: {{ $variables.url }}
  valueFrom:
    secretKeyRef:
      name: {{ $cloud.secret.name }}
      key: {{ $urlKey }}
      {{- if or (eq .name "brightbox") (include "cloudberth.cloud.configKind" .) }}
      optional: true
      {{- end }}
{{- end }}
{{- range $key, $variable := $variables.files }}
{{- with index $cloud.secret.keys $key }}
- name: {{ $variable }}_FILE
  value: /etc/cloudberth/credentials/{{ $.name }}/{{ . }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "cloudberth.cloud.hasFiles" -}}
{{- $cloud := index .root.Values.clouds .name -}}
{{- $variables := index (include "cloudberth.variables" .root | fromYaml) .name -}}
{{- range $key, $variable := $variables.files }}{{ with index $cloud.secret.keys $key }}yes{{ end }}{{ end -}}
{{- end -}}

{{/* ConfigMap, Secret or nothing: where the settings of --cloud-config are. */}}
{{- define "cloudberth.cloud.configKind" -}}
{{- $cloud := index .root.Values.clouds .name -}}
{{- $from := $cloud.configFrom | default dict -}}
{{- if or $cloud.config $from.configMap }}ConfigMap{{ else if $from.secret }}Secret{{ end -}}
{{- end -}}

{{- define "cloudberth.cloud.args" -}}
{{- if include "cloudberth.cloud.configKind" . }}
- --cloud-config={{ if .several }}{{ .name }}={{ end }}/etc/cloudberth/config/{{ .name }}/config.yaml
{{- end }}
{{- end -}}

{{- define "cloudberth.cloud.mounts" -}}
{{- if include "cloudberth.cloud.hasFiles" . }}
- name: {{ .name }}-credentials
  mountPath: /etc/cloudberth/credentials/{{ .name }}
  readOnly: true
{{- end }}
{{- if include "cloudberth.cloud.configKind" . }}
- name: {{ .name }}-config
  mountPath: /etc/cloudberth/config/{{ .name }}
  readOnly: true
{{- end }}
{{- end -}}

{{- define "cloudberth.cloud.volumes" -}}
{{- $cloud := index .root.Values.clouds .name -}}
{{- $variables := index (include "cloudberth.variables" .root | fromYaml) .name -}}
{{- if include "cloudberth.cloud.hasFiles" . }}
{{- /* A whole directory and no single file: only that is updated when the Secret changes. */}}
- name: {{ .name }}-credentials
  secret:
    secretName: {{ $cloud.secret.name }}
    defaultMode: 0440
    items:
      {{- range $key, $variable := $variables.files }}
      {{- with index $cloud.secret.keys $key }}
      - key: {{ . }}
        path: {{ . }}
      {{- end }}
      {{- end }}
{{- end }}
{{- $kind := include "cloudberth.cloud.configKind" . }}
{{- if $kind }}
- name: {{ .name }}-config
  {{- if eq $kind "ConfigMap" }}
  configMap:
    name: {{ $cloud.configFrom.configMap | default (printf "%s-config" (include "cloudberth.fullname" .root)) }}
  {{- else }}
  secret:
    secretName: {{ $cloud.configFrom.secret }}
    defaultMode: 0440
  {{- end }}
    items:
      - key: {{ if $cloud.config }}{{ .name }}.yaml{{ else }}{{ $cloud.configFrom.key }}{{ end }}
        path: config.yaml
{{- end }}
{{- end -}}
