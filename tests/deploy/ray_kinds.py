"""RayService, RayJob and RayCluster of ``ray.io/v1`` as KubeRay 1.7 defines them, strictly: an unknown field, a number
where a text is required and a missing field are errors. Facts from the Go types of ``ray-operator/apis/ray/v1``.

Pods and services inside are Kubernetes' own kinds; ``test_schemas`` checks them by Kubernetes' schemas.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Texts = dict[str, str]
Kubernetes = dict[str, Any]
"""A part whose type is Kubernetes' own."""
COUNT = Field(default=None, ge=0)


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Metadata(Strict):
    # A DNS label that begins with a letter; KubeRay appends up to sixteen characters.
    name: str = Field(pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$", max_length=47)
    namespace: str | None = None
    labels: Texts | None = None
    annotations: Texts | None = None


class AuthOptions(Strict):
    mode: Literal["token", "disabled"] | None = None
    secretName: str | None = None
    enableK8sTokenAuth: bool | None = None


class AutoscalerOptions(Strict):
    version: Literal["v1", "v2"] | None = None
    idleTimeoutSeconds: int | None = COUNT
    upscalingMode: Literal["Default", "Aggressive", "Conservative"] | None = None
    image: str | None = None
    imagePullPolicy: str | None = None
    resources: Kubernetes | None = None
    securityContext: Kubernetes | None = None
    env: list[Kubernetes] | None = None
    envFrom: list[Kubernetes] | None = None
    volumeMounts: list[Kubernetes] | None = None
    command: list[str] | None = None
    args: list[str] | None = None


class RedisCredential(Strict):
    value: str | None = None
    valueFrom: Kubernetes | None = None


class GcsFaultToleranceOptions(Strict):
    backend: Literal["redis", "rocksdb"] | None = None
    redisAddress: str | None = None
    redisUsername: RedisCredential | None = None
    redisPassword: RedisCredential | None = None
    externalStorageNamespace: str | None = None
    storage: Kubernetes | None = None


class HeadGroupSpec(Strict):
    template: Kubernetes
    rayStartParams: Texts | None = None
    resources: Texts | None = None
    labels: Texts | None = None
    headService: Kubernetes | None = None
    serviceType: str | None = None
    enableIngress: bool | None = None
    ingressOptions: Kubernetes | None = None


class ScaleStrategy(Strict):
    workersToDelete: list[str] | None = None


class WorkerGroupSpec(Strict):
    groupName: str
    # The three have defaults in the operator. Here they are required: what a group may cost should be read, not known.
    replicas: int = Field(ge=0)
    minReplicas: int = Field(ge=0)
    maxReplicas: int = Field(ge=0)
    template: Kubernetes
    rayStartParams: Texts | None = None
    resources: Texts | None = None
    labels: Texts | None = None
    numOfHosts: int | None = COUNT
    idleTimeoutSeconds: int | None = COUNT
    priority: int | None = None
    scaleStrategy: ScaleStrategy | None = None
    suspend: bool | None = None


class ClusterUpgradeStrategy(Strict):
    type: Literal["Recreate", "None"] | None = None


class RayClusterSpec(Strict):
    headGroupSpec: HeadGroupSpec
    workerGroupSpecs: list[WorkerGroupSpec] | None = None
    rayVersion: str | None = None
    authOptions: AuthOptions | None = None
    enableInTreeAutoscaling: bool | None = None
    autoscalerOptions: AutoscalerOptions | None = None
    gcsFaultToleranceOptions: GcsFaultToleranceOptions | None = None
    headServiceAnnotations: Texts | None = None
    upgradeStrategy: ClusterUpgradeStrategy | None = None
    suspend: bool | None = None
    managedBy: str | None = None
    # Each behind a feature gate of the operator; not used here, and so not described.
    networkPolicy: None = None
    tlsOptions: None = None
    historyServerOptions: None = None


class SubmitterConfig(Strict):
    backoffLimit: int | None = COUNT


class RayJobSpec(Strict):
    entrypoint: str | None = None
    entrypointNumCpus: float | None = None
    entrypointNumGpus: float | None = None
    entrypointResources: str | None = None
    runtimeEnvYAML: str | None = None
    jobId: str | None = None
    metadata: Texts | None = None
    submissionMode: Literal["K8sJobMode", "HTTPMode", "SidecarMode", "InteractiveMode"] | None = None
    submitterPodTemplate: Kubernetes | None = None
    submitterConfig: SubmitterConfig | None = None
    rayClusterSpec: RayClusterSpec | None = None
    clusterSelector: Texts | None = None
    backoffLimit: int | None = COUNT
    activeDeadlineSeconds: int | None = Field(default=None, ge=1)
    preRunningDeadlineSeconds: int | None = Field(default=None, ge=1)
    shutdownAfterJobFinishes: bool | None = None
    ttlSecondsAfterFinished: int | None = COUNT
    deletionStrategy: Kubernetes | None = None
    suspend: bool | None = None
    managedBy: str | None = None


class ClusterUpgradeOptions(Strict):
    gatewayClassName: str
    stepSizePercent: int = Field(ge=0, le=100)
    intervalSeconds: int = Field(ge=1)
    maxSurgePercent: int | None = Field(default=None, ge=0, le=100)


class ServiceUpgradeStrategy(Strict):
    type: Literal["NewCluster", "NewClusterWithIncrementalUpgrade", "None"] | None = None
    clusterUpgradeOptions: ClusterUpgradeOptions | None = None


class RayServiceSpec(Strict):
    rayClusterConfig: RayClusterSpec
    serveConfigV2: str | None = None
    serveService: Kubernetes | None = None
    upgradeStrategy: ServiceUpgradeStrategy | None = None
    rayClusterDeletionDelaySeconds: int | None = COUNT
    excludeHeadPodFromServeSvc: bool | None = None
    suspend: bool | None = None
    managedBy: str | None = None


class RayService(Strict):
    apiVersion: Literal["ray.io/v1"]
    kind: Literal["RayService"]
    metadata: Metadata
    spec: RayServiceSpec


class RayJob(Strict):
    apiVersion: Literal["ray.io/v1"]
    kind: Literal["RayJob"]
    metadata: Metadata
    spec: RayJobSpec


class RayCluster(Strict):
    apiVersion: Literal["ray.io/v1"]
    kind: Literal["RayCluster"]
    metadata: Metadata
    spec: RayClusterSpec


BY_NAME: dict[str, type[Strict]] = {"RayService": RayService, "RayJob": RayJob, "RayCluster": RayCluster}
